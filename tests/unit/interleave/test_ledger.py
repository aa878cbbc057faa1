"""Where time goes: busy, idle and bubbles add up to the time that passed, to the microsecond."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.ledger import Ending, Ledger, split_bubble
from edgeweave.interleave.nouns import BubbleCause, Stage, Timeline, UnitRan

CAUSES = st.sampled_from([BubbleCause.AWAIT_DECODE_HIDDEN, BubbleCause.AWAIT_PREFILL_HIDDEN, BubbleCause.AWAIT_TASK])
AT = st.none() | st.integers(0, 1_200)
ENDINGS = st.builds(Ending, cause=CAUSES, announced_us=AT, clean_arrival_us=AT, grace_from_us=AT)


def ran(begin_us: int, end_us: int) -> UnitRan:
    """A unit of which only the times matter."""
    return UnitRan(Stage.STEP, 1, 4, begin_us, end_us, prefill_ready=False, decode_ready=True, num_rows=1,
                   num_tokens=1, plan=1, step=1)  # fmt: skip


def total_us(timeline: Timeline) -> int:
    """Busy, bubbles and idle together."""
    busy_us = sum(unit.end_us - unit.begin_us for unit in timeline.ran)
    return busy_us + sum(b.end_us - b.begin_us for b in timeline.bubbles) + timeline.idle_us


@given(begin_us=st.integers(0, 1_000), length_us=st.integers(0, 1_000), ending=ENDINGS)
def test_a_bubble_is_cut_without_gap_or_overlap(begin_us: int, length_us: int, ending: Ending) -> None:
    """The parts follow on each other, are not empty, have one cause each, and together are the bubble."""
    end_us = begin_us + length_us
    spans = split_bubble(begin_us, end_us, ending)
    edges = [begin_us, *(span.end_us for span in spans)]
    assert [span.begin_us for span in spans] == edges[:-1]
    assert all(span.end_us > span.begin_us for span in spans)
    assert edges[-1] == (end_us if length_us else begin_us)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (Ending(BubbleCause.AWAIT_DECODE_HIDDEN), [("AWAIT_DECODE_HIDDEN", 100)]),
        (
            Ending(BubbleCause.AWAIT_DECODE_HIDDEN, clean_arrival_us=170),
            [("AWAIT_DECODE_HIDDEN", 70), ("LINK", 30)],
        ),
        (
            Ending(BubbleCause.AWAIT_PREFILL_HIDDEN, announced_us=120, clean_arrival_us=150),
            [("AWAIT_TASK", 20), ("AWAIT_PREFILL_HIDDEN", 30), ("LINK", 50)],
        ),
        (
            Ending(BubbleCause.AWAIT_DECODE_HIDDEN, clean_arrival_us=190, grace_from_us=110),
            [("AWAIT_DECODE_HIDDEN", 10), ("GRACE", 90)],
        ),
        (Ending(BubbleCause.AWAIT_TASK, announced_us=500), [("AWAIT_TASK", 100)]),
    ],
)
def test_each_part_of_a_bubble_has_its_cause(ending: Ending, expected: list[tuple[str, int]]) -> None:
    """Before the task: the scheduler's; after a clean trip: the link's; waiting by choice: grace."""
    spans = split_bubble(100, 200, ending)
    assert [(span.cause.name, span.end_us - span.begin_us) for span in spans] == expected


@given(
    start_us=st.integers(0, 1_000),
    events=st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["open", "close", "run", "take", "lose"]), ENDINGS)),
)
def test_busy_bubbles_and_idle_make_wall_time(start_us: int, events: list[tuple[int, str, Ending]]) -> None:
    """Whatever happens in whatever order, the sum of all reports is the time that passed."""
    ledger, now_us, counted_us = Ledger(start_us), start_us, 0
    for delta_us, what, ending in events:
        now_us += delta_us
        match what:
            case "open" | "close":
                ledger.set_open(is_open=what == "open", now_us=now_us)
            case "run":
                ledger.begin_unit(now_us=now_us, ending=ending)
                ledger.end_unit(now_us=now_us + delta_us, ran=ran(now_us, now_us + delta_us))
                now_us += delta_us
            case "take":
                counted_us += total_us(ledger.take(now_us=now_us))
            case _:
                ledger.lose(now_us=now_us)
    ledger.set_open(is_open=False, now_us=now_us)
    assert counted_us + total_us(ledger.take(now_us=now_us)) == now_us - start_us


def test_a_lost_session_ends_its_bubble_as_lost() -> None:
    """What was waited for when the session broke is lost, and nothing is open afterwards."""
    ledger = Ledger(0)
    ledger.set_open(is_open=True, now_us=10)
    ledger.lose(now_us=30)
    timeline = ledger.take(now_us=40)
    assert [(b.cause, b.end_us - b.begin_us) for b in timeline.bubbles] == [(BubbleCause.LOST, 20)]
    assert timeline.idle_us == 20
