"""What is compared with what, and what a cell says."""

import pytest

from edgeweave.interleave.nouns import BubbleCause
from edgeweave.sim.load import Arrival, Load
from fakes.bench_runs import answer, fused_place_run, one_place_run, split_run
from weaving.answers import Answer
from weaving.cells import best_apart_of, best_of, table_of
from weaving.loads import BenchLoad, Steady
from weaving.run import Run

LOAD = BenchLoad("A", "some", Load("A", (Arrival(0, 10, 2),) * 2, max_open=1), 2, Steady.REPLENISHED)


def _base(wall_us: int, *, variant: str = "alternate", number: int = 0) -> Run:
    return one_place_run(_answers(wall_us), variant=variant, prefill_us=20, steps=(10, 100), number=number)


def _split(wall_us: int, *, variant: str = "adaptive", number: int = 0) -> Run:
    bubbles_us = {BubbleCause.AWAIT_DECODE_HIDDEN: 30, BubbleCause.LINK: 10}
    return split_run(
        _answers(wall_us), variant=variant, prefill_us=16, steps=(10, 100), bubbles_us=bubbles_us, number=number
    )


def _answers(wall_us: int) -> list[Answer]:
    half = wall_us // 2
    return [answer(0, half // 2, half), answer(half, half + half // 2, wall_us)]


def test_the_fastest_plan_of_one_place_is_the_baseline() -> None:
    """The slower ones are shown, and nothing is compared with them."""
    trials = [_base(400, variant="slow"), _base(200, variant="fast")]
    assert best_of(trials) == "fast"
    table = table_of(LOAD, trials=trials, runs=[trials[1], _split(400)])
    assert [cell.variant for cell in table.one_place] == ["fast", "slow"]
    (cell,) = table.split
    assert cell.best is not None
    assert cell.best.ratio is not None
    assert cell.best.ratio.median == 0.5
    assert cell.apart is None, "no row rode under the best plan either"


def test_where_rows_ride_in_the_best_plan_the_best_without_is_compared_as_well() -> None:
    """Each with its own runs and its own bound: orders in which rows may ride, and those in which not."""
    trials = [_base(800, variant="slow"), _base(400, variant="apart"), fused_place_run(_answers(200))]
    assert (best_of(trials), best_apart_of(trials)) == ("fused", "apart")
    table = table_of(LOAD, trials=trials, runs=[trials[1], trials[2], _split(250)])
    assert (table.baseline, table.baseline_apart) == ("fused", "apart")
    assert [cell.variant for cell in table.one_place] == ["fused", "apart", "slow"]
    (cell,) = table.split
    assert cell.best is not None
    assert cell.apart is not None
    assert [str(compared.ratio) for compared in (cell.best, cell.apart)] == ["0.80", "1.60"]
    assert cell.best.bound != cell.apart.bound


def test_rounds_are_compared_with_their_own_run_in_one_place() -> None:
    runs = [_base(200, number=0), _split(220, number=0), _base(400, number=1), _split(400, number=1)]
    (cell,) = table_of(LOAD, trials=[_base(200)], runs=runs).split
    assert cell.best is not None
    assert cell.best.ratio is not None
    assert (cell.num_runs, cell.best.ratio.num_pairs) == (2, 2)
    assert cell.best.ratio.least == pytest.approx(10 / 11)
    assert cell.best.ratio.most == 1.0


def test_plans_are_compared_with_serial_at_the_same_place() -> None:
    runs = [_base(200), _split(400, variant="serial"), _split(250)]
    serial, adaptive = table_of(LOAD, trials=[_base(200)], runs=runs).split
    assert serial.over_serial is None
    assert adaptive.over_serial is not None
    assert adaptive.over_serial.median == 1.6


def test_a_cell_names_what_cost_most() -> None:
    """Bubbles that nothing could have filled are not counted as lost, work at full batch neither."""
    (cell,) = table_of(LOAD, trials=[_base(200)], runs=[_base(200), _split(400)]).split
    assert cell.bubbles == {BubbleCause.AWAIT_DECODE_HIDDEN: 30 / 156, BubbleCause.LINK: 10 / 156}
    assert cell.busy_share == 116 / 156
    assert cell.loss is not None
    assert (cell.loss.cause, cell.loss.share) == ("work of thin batches and short segments", 90 / 156)


def test_an_open_load_is_judged_by_goodput() -> None:
    """Its throughput is that of its arrivals; limits are those of one place, the slack included."""
    load = BenchLoad("C", "open", LOAD.load, 2, Steady.REPLENISHED, is_open=True)
    (cell,) = table_of(load, trials=[_base(200)], runs=[_base(200), _split(1000)]).split
    assert cell.loss is None
    assert cell.best is not None
    assert (cell.best.bound, cell.best.steady) == (None, None)
    assert cell.best.goodput is not None
    assert cell.best.goodput.median == 0.0
