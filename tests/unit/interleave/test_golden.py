"""The order of units from end to end, as text: a change of behaviour is a diff that somebody reads.

Written anew by `UPDATE_GOLDEN=1 make test ARGS=tests/unit/interleave/test_golden.py`; see `tests/golden/README.md`.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Fuse, PlanKind, Stage, UnitRan
from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest
from fakes.mesh import NUM_LAYERS, Config, Mesh
from fakes.symbolic import generate
from fakes.timed import TimedMesh, text_of

GOLDEN = Path(__file__).parents[2] / "golden"
LIMITS = Limits(max_prefill_batch_size=2, max_seq_len=64, max_batch_size=4, chunk_tokens=6)
LOAD = {"a": (8, 3), "b": (4, 3), "c": (5, 2)}
"""Prompt tokens and output tokens of each request; all come at once."""
PLANS = {name: PlanRequest(kind, num_segments=2) for name, kind in PLAN_NAMES.items()}
FUSED = PlanRequest(PlanKind.TWO_P_ONE_D, max_prefills=4, num_segments=2, fuse=Fuse.ALWAYS)
FUSED_LOAD = {"a": (4, 6), "b": (12, 2), "c": (12, 2), "d": (12, 2), "e": (6, 2)}
"""Long prompts behind a short one, each chunk a part of one, so that steps of the first ride in the others."""


def played(name: str) -> tuple[Mesh, dict[Side, tuple[UnitRan, ...]]]:
    """Play the load under a plan."""
    return played_load(PLANS[name], LOAD, LIMITS)


def played_load(
    plan: PlanRequest, load: dict[str, tuple[int, int]], limits: Limits
) -> tuple[Mesh, dict[Side, tuple[UnitRan, ...]]]:
    """Play a load under a plan."""
    mesh = Mesh(Config(limits=limits, plan=plan, piece_tokens=6, frame_rows=6, max_grace_us=20_000))
    for request_id, (num_prompt, max_tokens) in load.items():
        mesh.queue(request_id, tuple(range(1, num_prompt + 1)), max_tokens=max_tokens)
    mesh.poll_scheduler()
    return mesh, TimedMesh(mesh).play()


@pytest.mark.parametrize("name", PLANS)
def test_the_order_of_units_is_as_it_was(name: str) -> None:
    """The end-to-end order under each plan equals the text that is kept, and the replay departs from it nowhere."""
    check_golden(name, *played(name), LOAD)


def test_the_order_of_fused_units_is_as_it_was() -> None:
    """A step that rides in a chunk which begins with it, and in one that overtakes the chunk that covers."""
    mesh, ran = played_load(FUSED, FUSED_LOAD, replace(LIMITS, max_prefill_batch_size=1))
    check_golden("fused", mesh, ran, FUSED_LOAD)
    fused = [unit for unit in ran[Side.CLOUD] if unit.stage is Stage.FUSED_SEGMENT]
    order = [unit.chunk for unit in ran[Side.CLOUD] if unit.chunk is not None]
    assert len(fused) > 1
    assert order != sorted(order)


def check_golden(name: str, mesh: Mesh, ran: dict[Side, tuple[UnitRan, ...]], load: dict[str, tuple[int, int]]) -> None:
    """Compare with the text that is kept, and the output with what one place would generate."""
    path = GOLDEN / f"order_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text_of(ran), encoding="utf-8")
    assert text_of(ran) == path.read_text(encoding="utf-8")
    assert mesh.session.replay.num_departures == 0
    assert sum(map(len, ran.values())) == sum(t.num_units for t in mesh.session.totals.engines.values())
    for request_id, (num_prompt, max_tokens) in load.items():
        prompt = tuple(range(1, num_prompt + 1))
        assert mesh.emitted[request_id] == generate(prompt, num_layers=NUM_LAYERS, max_tokens=max_tokens)


def test_more_in_flight_ends_sooner() -> None:
    """What the plans are for: over the same link 2p1d ends before 1p1d, and 1p1d before serial."""
    fixed = ("serial", "1p1d", "2p1d")
    ends = [max(unit.end_us for units in played(name)[1].values() for unit in units) for name in fixed]
    assert ends == sorted(ends, reverse=True)
    assert len(set(ends)) == len(ends)
