"""The random-schedule test of the three cores, and proof that it catches a broken rule."""

from collections import Counter

import pytest

from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.nouns import Stage
from edgeweave.interleave.requests import Attempt
from fakes.mesh import Config
from fakes.mutants import MUTATIONS
from fakes.schedules import CALM, FUSING, ROUGH, Faults, run_schedule

BLOCK = 500
NUM_ROUGH_BLOCKS = 32
NUM_CALM_BLOCKS = 8
NUM_FUSING_BLOCKS = 6
FUSED = (Stage.FUSED_SEGMENT, Stage.FUSED_HEAD, Stage.BOARDING)


@pytest.mark.parametrize("block", range(NUM_ROUGH_BLOCKS))
def test_any_order_and_any_fault_leaves_exact_output_and_nothing_else(block: int) -> None:
    """Rows run once each, by position; nothing runs for whom is gone; at the end no core holds anything."""
    states: set[str] = set()
    num_preemptions = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        schedule = run_schedule(seed, faults=ROUGH)
        states |= set(schedule.abort_states)
        num_preemptions += schedule.mesh.scheduler.num_preemptions
    assert states == {"waiting", Attempt.PREFILLING.value, Attempt.DECODING.value}
    assert num_preemptions > 5


@pytest.mark.parametrize("block", range(NUM_CALM_BLOCKS))
def test_without_faults_every_request_finishes_and_no_row_is_skipped(block: int) -> None:
    """Preemption aside, an undisturbed mesh skips nothing and finishes all."""
    for seed in range(1_000_000 + block * BLOCK, 1_000_000 + (block + 1) * BLOCK):
        schedule = run_schedule(seed, faults=CALM)
        assert schedule.mesh.finished == set(schedule.asked)


@pytest.mark.parametrize("block", range(NUM_FUSING_BLOCKS))
@pytest.mark.parametrize("faults", [CALM, ROUGH], ids=["calm", "rough"])
def test_any_order_is_exact_where_rows_ride_in_prefill(faults: Faults, block: int) -> None:
    """The same rules hold for units of both kinds, for steps in two parts, and for chunks that overtake others."""
    ran = Counter[Stage]()
    for seed in range(2_000_000 + block * BLOCK, 2_000_000 + (block + 1) * BLOCK):
        schedule = run_schedule(seed, faults=faults, base=FUSING)
        for totals in schedule.mesh.session.totals.engines.values():
            ran.update({stage: unit.num_units for (stage, _), unit in totals.units.items()})
        if faults is CALM:
            assert schedule.mesh.finished == set(schedule.asked)
    assert all(ran[stage] > BLOCK / 25 for stage in FUSED), ran


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_is_caught(name: str) -> None:
    """Taking away any one rule fails within a few hundred schedules, so the test above guards each of them."""
    for seed in range(500):
        try:
            run_schedule(seed, faults=ROUGH, base=MUTATIONS[name](Config()))
        except (AssertionError, EdgeweaveError, KeyError):
            return
    pytest.fail(f"500 schedules passed with {name}")
