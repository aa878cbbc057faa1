"""The random-schedule test of the three cores, and proof that it catches a broken rule."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.cloud_core import CloudChunk, CloudCore
from edgeweave.interleave.edge_core import EdgeCore
from edgeweave.interleave.edge_sequences import EdgeSequences
from edgeweave.interleave.effects import CloudEffect, FrameArrived
from edgeweave.interleave.nouns import Row, Sample
from edgeweave.interleave.requests import Attempt
from edgeweave.interleave.scheduler_core import SchedulerCore, SchedulerEffect, Session
from fakes.mesh import Config
from fakes.schedules import CALM, ROUGH, run_schedule

BLOCK = 1_000
NUM_ROUGH_BLOCKS = 16
NUM_CALM_BLOCKS = 4


@pytest.mark.parametrize("block", range(NUM_ROUGH_BLOCKS))
def test_any_order_and_any_fault_leaves_exact_output_and_nothing_else(block: int) -> None:
    """Every row runs once and in position order, nothing runs for a freed sequence, all cores end empty."""
    states: set[str] = set()
    num_preemptions = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        schedule = run_schedule(seed, faults=ROUGH)
        states |= set(schedule.abort_states)
        num_preemptions += schedule.mesh.scheduler.num_preemptions
    assert states == {"waiting", Attempt.PREFILLING.value, Attempt.DECODING.value}
    assert num_preemptions > 20


@pytest.mark.parametrize("block", range(NUM_CALM_BLOCKS))
def test_without_faults_every_request_finishes_and_no_row_is_skipped(block: int) -> None:
    """Preemption aside, an undisturbed mesh skips nothing and finishes all."""
    for seed in range(1_000_000 + block * BLOCK, 1_000_000 + (block + 1) * BLOCK):
        schedule = run_schedule(seed, faults=CALM)
        assert schedule.mesh.finished == set(schedule.asked)


class NoSkipInCloud(CloudCore):
    """Breaks the rule that rows of released sequences are skipped: runs them."""

    def _live(self, rows: tuple[Row, ...]) -> tuple[bool, ...]:
        return (True,) * len(rows)


class AllLive(EdgeSequences):
    """Takes every row for live."""

    def live(self, rows: Iterable[Row]) -> tuple[bool, ...]:
        return tuple(True for _ in rows)


@dataclass(slots=True)
class NoSkipOnEdge(EdgeCore):
    """Breaks the same rule on the edge."""

    book: EdgeSequences = field(default_factory=AllLive)


class NoDropInCloud(CloudCore):
    """Breaks the rule that a chunk without live sequences is dropped: keeps it open."""

    def _drop(self, number: int) -> list[CloudEffect]:
        assert isinstance(self.chunks[number], CloudChunk)
        return []


class NoHold(CloudCore):
    """Breaks the rule that frames before their task are held: throws them away."""

    def _hold_early(self, frame: FrameArrived) -> list[CloudEffect]:
        assert frame.unit > self._highest_chunk
        return []


class NoIgnore(SchedulerCore):
    """Breaks the rule that samples of a released sequence are ignored: takes them."""

    def _take_samples(self, session: Session, samples: tuple[Sample, ...], now_us: int) -> list[SchedulerEffect]:
        known = [(session.sequences.get(sample.sequence), sample) for sample in samples]
        return [e for seq, sample in known if seq is not None for e in self._take_sample(seq, sample, now_us)]


MUTATIONS = {
    "no skip in the cloud": Config(cloud_core=NoSkipInCloud),
    "no skip on the edge": Config(edge_core=NoSkipOnEdge),
    "no drop": Config(cloud_core=NoDropInCloud),
    "no hold": Config(cloud_core=NoHold),
    "no ignore": Config(scheduler_core=NoIgnore),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_is_caught(name: str) -> None:
    """Taking away any one rule fails within a few hundred schedules, so the test above guards each of them."""
    for seed in range(500):
        try:
            run_schedule(seed, faults=ROUGH, base=MUTATIONS[name])
        except (AssertionError, EdgeweaveError, KeyError):
            return
    pytest.fail(f"500 schedules passed with {name}")
