"""How long an emulated unit takes."""

import pytest

from edgeweave.clock import ManualClock
from edgeweave.emulated.profile_time import ProfileTime
from edgeweave.interleave.effects import Draw, RunHead, RunSegment, RunStep, RunTail
from edgeweave.interleave.nouns import GREEDY, Chunk, Lane, Row, Segment, StepRows
from edgeweave.sim.unit_times import cloud_unit_us, edge_unit_us
from fakes.emulated import NUM_LAYERS, SMALL

ROWS = (Row(1, 0, 4), Row(2, 0, 6))
LIVE = (True, True)
STEP = StepRows(1, (Row(1, 4, 5), Row(2, 6, 7)))
CHUNK = Chunk(1, ROWS, (Segment(1, 7),), plan=1, deadline_ms=1000)


def head(lane: Lane) -> RunHead:
    return RunHead(lane, 1, ROWS, LIVE, (0,) * 10, row_start=0, row_stop=10, num_rows=20)


def tail(lane: Lane, *, num_draws: int) -> RunTail:
    draws = tuple(Draw(row, GREEDY, 0) for row in range(num_draws))
    return RunTail(lane, 1, ROWS, LIVE, draws, row_start=0, row_stop=10)


def test_times_follow_from_the_numbers_of_the_profile() -> None:
    """A fixed part a unit, then by layer, row or token, and the draws of a tail."""
    assert edge_unit_us(SMALL, head(Lane.PREFILL), is_centralized=False) == 100 + (20 + 10)
    assert edge_unit_us(SMALL, head(Lane.DECODE), is_centralized=False) == 100 + (10 + 10)
    assert edge_unit_us(SMALL, tail(Lane.PREFILL, num_draws=2), is_centralized=False) == 100 + (20 + 10) + 2 * 5
    assert cloud_unit_us(SMALL, RunSegment(CHUNK, Segment(2, 5), LIVE)) == 100 + 3 * (40 + 10)
    assert cloud_unit_us(SMALL, RunStep(STEP, Segment(1, 7), LIVE)) == 100 + 6 * (30 + 2)


def test_one_place_runs_all_layers_in_the_head_on_the_hardware_of_the_cloud() -> None:
    assert edge_unit_us(SMALL, head(Lane.PREFILL), is_centralized=True) == 100 + NUM_LAYERS * (40 + 10)
    assert edge_unit_us(SMALL, tail(Lane.DECODE, num_draws=1), is_centralized=True) == 100 + 5


class LateSleep:
    """Sleeps on a manual clock, and wakes up late."""

    def __init__(self, clock: ManualClock, *, late_us: int) -> None:
        self.clock = clock
        self.late_us = late_us
        self.num_sleeps = 0

    def __call__(self, seconds: float) -> None:
        self.num_sleeps += 1
        self.clock.advance(round(seconds * 1e6) + self.late_us)


UNIT_US = 100 + 6 * (30 + 2)


def timed(unit_time: ProfileTime, clock: ManualClock, *, work_us: int, choosing_us: int = 0) -> int:
    """Return how long a unit takes that was chosen within `choosing_us` and has `work_us` of real work."""
    begin_us = clock.now_us()
    clock.advance(choosing_us)
    with unit_time(RunStep(STEP, Segment(1, 7), LIVE), begin_us):
        clock.advance(work_us)
    return clock.now_us() - begin_us


@pytest.mark.parametrize(("work_us", "took_us"), [(0, UNIT_US), (200, UNIT_US), (UNIT_US + 7, UNIT_US + 7)])
def test_real_work_is_part_of_the_time(work_us: int, took_us: int) -> None:
    """What is left is slept; nothing is where the work took longer."""
    clock = ManualClock()
    sleep = LateSleep(clock, late_us=0)
    unit_time = ProfileTime(SMALL, is_centralized=False, clock=clock, sleep=sleep)
    assert timed(unit_time, clock, work_us=work_us) == took_us
    assert sleep.num_sleeps == (work_us < UNIT_US)
    assert timed(unit_time, clock, work_us=0, choosing_us=50) == UNIT_US


def test_late_wake_ups_are_learned() -> None:
    """A machine that always wakes up 80 us late is asked to wake 80 us earlier; one bad moment changes nothing."""
    clock = ManualClock()
    sleep = LateSleep(clock, late_us=80)
    unit_time = ProfileTime(SMALL, is_centralized=False, clock=clock, sleep=sleep)
    assert timed(unit_time, clock, work_us=0) == UNIT_US + 80
    for _ in range(60):
        timed(unit_time, clock, work_us=0)
    assert timed(unit_time, clock, work_us=0) == pytest.approx(UNIT_US, abs=2)
    sleep.late_us = 5000
    timed(unit_time, clock, work_us=0)
    sleep.late_us = 80
    assert timed(unit_time, clock, work_us=0) == pytest.approx(UNIT_US, abs=2)
    assert timed(unit_time, clock, work_us=UNIT_US - 30) == pytest.approx(UNIT_US, abs=40), "too little to sleep for"


def test_a_unit_that_fails_fails_at_once() -> None:
    clock = ManualClock()
    sleep = LateSleep(clock, late_us=0)
    unit_time = ProfileTime(SMALL, is_centralized=False, clock=clock, sleep=sleep)
    with pytest.raises(ZeroDivisionError), unit_time(head(Lane.DECODE), 0):
        _ = 1 / 0
    assert (clock.now_us(), sleep.num_sleeps) == (0, 0)
