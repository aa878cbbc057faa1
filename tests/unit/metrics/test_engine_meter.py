"""Where the time of one engine goes, by what ended each bubble; and what its lanes carried, over all sessions."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.ledger import Ending, Ledger
from edgeweave.interleave.nouns import Bubble, BubbleCause, Lane, Stage, Timeline
from edgeweave.metrics.engine_meter import BubbleKind, EngineMeter
from edgeweave.metrics.lane_meter import LaneMeter
from edgeweave.metrics.mesh_metrics import TimeMetric
from fakes.metered import ran


def new_meter() -> EngineMeter:
    return EngineMeter(TimeMetric.UNIT_TIME, TimeMetric.STEP_ROWS)


def seen(meter: EngineMeter) -> dict[tuple[BubbleKind, BubbleCause], int]:
    return {what: length_us for what, length_us in meter.bubbles_us.items() if length_us}


def test_a_bubble_has_the_kind_of_the_unit_that_ended_it() -> None:
    """So has each piece of a bubble that was cut by cause; a bubble that no unit ended has none."""
    meter = new_meter()
    units = (ran(Stage.SEGMENT, 10, 20), ran(Stage.STEP, 50, 60))
    bubbles = (
        Bubble(3, 10, BubbleCause.AWAIT_PREFILL_HIDDEN),
        Bubble(20, 25, BubbleCause.AWAIT_TASK),
        Bubble(25, 45, BubbleCause.AWAIT_DECODE_HIDDEN),
        Bubble(45, 50, BubbleCause.LINK),
        Bubble(60, 62, BubbleCause.AWAIT_TASK),
    )
    meter.take(Timeline(units, bubbles, 3, 62))
    assert seen(meter) == {
        (BubbleKind.PREFILL, BubbleCause.AWAIT_PREFILL_HIDDEN): 7,
        (BubbleKind.DECODE, BubbleCause.AWAIT_TASK): 5,
        (BubbleKind.DECODE, BubbleCause.AWAIT_DECODE_HIDDEN): 20,
        (BubbleKind.DECODE, BubbleCause.LINK): 5,
        (BubbleKind.NONE, BubbleCause.AWAIT_TASK): 2,
    }
    assert (meter.busy_us, meter.idle_us) == (20, 3)


def test_units_are_counted_by_stage_and_steps_by_rows() -> None:
    """Rows of prefill say nothing about the size of a step."""
    meter = new_meter()
    meter.take(Timeline((ran(Stage.STEP, 0, 20, num_rows=8, num_skipped=2), ran(Stage.SEGMENT, 20, 50)), (), 0, 50))
    meter.take(Timeline((ran(Stage.STEP, 50, 70, num_rows=4),), (), 0, 70, received_bytes=7, sent_bytes=5, inside_us=3))
    assert {stage: (times.num_observed, times.total) for stage, times in meter.units.items()} == {
        Stage.STEP: (2, 40),
        Stage.SEGMENT: (1, 30),
    }
    assert (meter.step_rows.num_observed, meter.step_rows.total) == (2, 12)
    assert (meter.num_skipped_rows, meter.received_bytes, meter.sent_bytes, meter.inside_us) == (2, 7, 5, 3)


@given(st.lists(st.tuples(st.sampled_from(["unit", "open", "close", "report", "lose"]), st.integers(1, 50))))
def test_busy_bubbles_and_idle_are_the_time_of_the_ledger(moves: list[tuple[str, int]]) -> None:
    """Nothing is lost or counted twice between the ledger and the metrics; units end bubbles of their kind."""
    ledger, meter, now_us, is_open = Ledger(0), new_meter(), 0, False
    for move, wait_us in moves:
        now_us += wait_us
        if move == "unit" and is_open:
            ledger.begin_unit(now_us=now_us, ending=Ending(BubbleCause.AWAIT_DECODE_HIDDEN, announced_us=now_us - 1))
            ledger.end_unit(now_us=now_us + 5, ran=ran(Stage.STEP, now_us, now_us + 5))
            now_us += 5
        elif move in {"open", "close"}:
            is_open = move == "open"
            ledger.set_open(is_open=is_open, now_us=now_us)
        elif move == "lose":
            is_open = False
            ledger.lose(now_us=now_us)
        elif move == "report":
            meter.take(ledger.take(now_us=now_us))
    ledger.set_open(is_open=False, now_us=now_us)
    meter.take(ledger.take(now_us=now_us))
    assert meter.busy_us + meter.idle_us + sum(meter.bubbles_us.values()) == now_us
    assert all(kind is BubbleKind.DECODE for kind, cause in seen(meter) if cause is BubbleCause.AWAIT_DECODE_HIDDEN)


@dataclass
class Carried:
    """A lane that has carried so much."""

    lane: Lane
    sent_bytes: int = 0
    received_bytes: int = 0


def test_lanes_are_counted_over_all_sessions() -> None:
    """A lane counts itself while it is open; what the one before carried stays."""
    lanes = LaneMeter()
    first, other = Carried(Lane.DECODE, 3, 1), Carried(Lane.PREFILL, 50)
    lanes.watch(first)
    lanes.watch(other)
    first.sent_bytes, first.received_bytes = 10, 20
    lanes.watch(second := Carried(Lane.DECODE))
    second.sent_bytes = 5
    assert (lanes.sent_bytes(Lane.DECODE), lanes.received_bytes(Lane.DECODE)) == (15, 20)
    assert (lanes.sent_bytes(Lane.PREFILL), lanes.received_bytes(Lane.PREFILL)) == (50, 0)
    assert lanes.num_opened == {Lane.PREFILL: 1, Lane.DECODE: 2}
