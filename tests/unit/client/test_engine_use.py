"""What an engine did between two states of it: all of its time is in there."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgeweave.client.engine_use import engine_use
from edgeweave.client.mesh_state import EngineState, UnitSum
from edgeweave.interleave.ledger import Ending, Ledger
from edgeweave.interleave.nouns import BubbleCause, Stage, UnitRan
from edgeweave.interleave.totals import EngineTotals

EVENTS = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from(["open", "close", "begin", "end", "report"]), st.integers(0, 60)),
    max_size=60,
)
STEP, SEGMENT = (Stage.STEP, 4), (Stage.SEGMENT, 1)
STATE = EngineState(
    busy_us=90,
    bubbles_us={BubbleCause.LINK: 5},
    idle_us=5,
    num_units=1,
    num_skipped_rows=0,
    num_blocks=10,
    num_free_blocks=4,
    received_bytes=100,
    sent_bytes=50,
    units={STEP: UnitSum(1, 90)},
    clock_us=1_100,
)


def state_of(totals: EngineTotals) -> EngineState:
    """What the scheduler tells of these sums."""
    return replace(
        STATE,
        busy_us=totals.busy_us,
        bubbles_us=dict(totals.bubbles_us),
        idle_us=totals.idle_us,
        units={kind: UnitSum(unit.num_units, unit.total_us) for kind, unit in totals.units.items()},
        clock_us=totals.clock_us,
    )


@given(events=EVENTS)
def test_busy_bubbles_and_idle_are_the_time_between_two_reports(events: list[tuple[int, str, int]]) -> None:
    """To the microsecond, but for what was open at the first report, counted since, and at the second, not yet."""
    ledger, totals, now_us, begin_us = Ledger(0), EngineTotals(), 0, None
    seen: list[tuple[EngineState, int]] = []
    for delta_us, what, split_us in events:
        now_us += delta_us
        match what:
            case "open" | "close":
                ledger.set_open(is_open=what == "open", now_us=now_us)
            case "begin" if begin_us is None:
                begin_us = now_us
                ledger.begin_unit(now_us=now_us, ending=Ending(BubbleCause.GRACE, announced_us=now_us - split_us))
            case "end" if begin_us is not None:
                ledger.end_unit(now_us=now_us, ran=_ran(begin_us, now_us))
                begin_us = None
            case "report":
                totals.add(ledger.take(now_us=now_us))
                open_us = now_us - (begin_us if begin_us is not None else ledger.since_us)
                seen.append((state_of(totals), open_us))
    for index, (before, was_open_us) in enumerate(seen):
        for after, is_open_us in seen[index:]:
            use = engine_use(before, after)
            assert use.counted_us == use.reported_us + was_open_us - is_open_us
            shares = [use.share(time_us) for time_us in (use.busy_us, use.idle_us, *use.bubbles_us.values())]
            assert use.counted_us == 0 or abs(sum(share or 0.0 for share in shares) - 1.0) < 1e-9


def test_what_was_before_does_not_count() -> None:
    """Units that did not run in between are not there, nor is a cause that did not grow."""
    after = replace(
        STATE,
        busy_us=150,
        idle_us=25,
        received_bytes=400,
        units={**STATE.units, SEGMENT: UnitSum(3, 60)},
        clock_us=1_200,
    )
    use = engine_use(STATE, after)
    assert (use.units, use.bubbles_us) == ({SEGMENT: UnitSum(3, 60)}, {})
    assert (use.busy_us, use.idle_us, use.open_us, use.counted_us, use.reported_us) == (60, 20, 60, 80, 100)
    assert (use.received_bytes, use.sent_bytes) == (300, 0)
    assert (use.share(use.busy_us), use.share(use.idle_us)) == (0.75, 0.25)


def test_a_session_that_began_counts_from_its_beginning() -> None:
    """All of its sums, and as much time as they say."""
    use = engine_use(None, STATE)
    assert (use.busy_us, use.bubbles_us, use.idle_us, use.reported_us) == (90, {BubbleCause.LINK: 5}, 5, 100)
    assert (use.received_bytes, use.sent_bytes) == (100, 50)


def test_without_accounted_time_there_are_no_shares() -> None:
    """An engine in one long unit has told nothing yet: that is not 0 % of anything."""
    use = engine_use(STATE, replace(STATE, clock_us=2_000))
    assert (use.counted_us, use.reported_us, use.share(use.busy_us)) == (0, 900, None)


def _ran(begin_us: int, end_us: int) -> UnitRan:
    return UnitRan(Stage.STEP, 1, 4, begin_us, end_us, prefill_ready=False, decode_ready=True, num_rows=1,
                   num_tokens=1, plan=1, step=1)  # fmt: skip
