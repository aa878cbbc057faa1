"""Sums of one engine over its reports."""

from edgeweave.interleave.nouns import Bubble, BubbleCause, Stage, Timeline, UnitRan
from edgeweave.interleave.totals import EngineTotals, UnitTotal


def _ran(stage: Stage, begin_us: int, end_us: int, *, num_rows: int) -> UnitRan:
    return UnitRan(
        stage,
        1,
        4,
        begin_us,
        end_us,
        prefill_ready=False,
        decode_ready=False,
        num_rows=num_rows,
        num_tokens=num_rows,
        plan=1,
        step=1,
        num_skipped=1,
    )


def test_all_time_is_summed_up_by_what_it_went_to() -> None:
    """Units by stage and rows, bubbles by cause; busy is the time of all units."""
    totals = EngineTotals()
    bubble = Bubble(20, 25, BubbleCause.LINK)
    totals.add(Timeline((_ran(Stage.STEP, 0, 20, num_rows=8), _ran(Stage.STEP, 25, 40, num_rows=4)), (bubble,), 3, 43))
    totals.add(Timeline((_ran(Stage.STEP, 43, 65, num_rows=8), _ran(Stage.SEGMENT, 65, 70, num_rows=1)), (), 0, 70))
    assert totals.units == {
        (Stage.STEP, 8): UnitTotal(2, 42),
        (Stage.STEP, 4): UnitTotal(1, 15),
        (Stage.SEGMENT, 1): UnitTotal(1, 5),
    }
    assert totals.busy_us == 62
    assert (totals.bubbles_us, totals.idle_us) == ({BubbleCause.LINK: 5}, 3)
    assert (totals.num_units, totals.num_skipped_rows) == (4, 4)
