"""The page of a table, as text."""

from dataclasses import replace

from edgeweave.interleave.nouns import BubbleCause
from edgeweave.sim.load import Arrival, Load
from weaving.answers import Latency
from weaving.cells import Cell, Compared, Loss, Table
from weaving.loads import BenchLoad, Steady
from weaving.places import ONE_PLACE, Place
from weaving.ratios import Ratio
from weaving.tables import Origin, table_page

LOAD = BenchLoad("A", "balanced", Load("A", (Arrival(0, 256, 32), Arrival(0, 512, 32)), 12), 8, Steady.REPLENISHED)
ORIGIN = Origin("bench/weave.py --loads A", "2 cores")
LATENCY = Latency(812.4, 1650.0, 31.25, 48.0)
PLAIN = Cell(
    ONE_PLACE,
    "alternate",
    num_runs=5,
    tokens_per_s=1234.5,
    latency=LATENCY,
    busy_share=0.99,
    bubbles={BubbleCause.AWAIT_TASK: 0.001},
    cpu={"edge": 0.98, "scheduler": 0.021},
    slowdown=1.0,
)
SPLIT = replace(
    PLAIN,
    place=Place(1000.0),
    variant="adaptive",
    bubbles={BubbleCause.AWAIT_DECODE_HIDDEN: 0.07, BubbleCause.LINK: 0.01},
    best=Compared(Ratio(0.954, 0.93, 0.97, 5), Ratio(1.02, 1.0, 1.03, 5), 1.07),
    loss=Loss("await decode hidden", 0.07),
)
PAGE = """\
# Load A, balanced, real engines

Written by `bench/weave.py --loads A` on 2 cores. What the columns mean: [README](README.md).

2 requests, at most 12 open; prompts of 256 to 512 tokens, outputs of 32; at most 8 sequences in a decode step.

## One place

| plan | runs | tokens/s | TTFT p50 / p90, ms | TPOT p50 / p90, ms | busy | bubbles | control | CPU of a core |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| alternate | 5 | 1,234 | 812 / 1,650 | 31.2 / 48.0 | 99% | none | 100% | edge 98%, scheduler 2% |

The best plan of one place is `alternate`; all ratios are to it.

## Split

| place | plan | runs | whole run | steady state | bound | steady / bound | lost most by | TTFT p50 / p90, ms | \
TPOT p50 / p90, ms | busy | bubbles | control | CPU of a core |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 1,000 km | adaptive | 5 | 0.95 (0.93-0.97) | 1.02 (1.00-1.03) | 1.07 | 0.95 | await decode hidden 7% | 812 / 1,650 | \
31.2 / 48.0 | 99% | await decode hidden 7%, link 1% | 100% | edge 98%, scheduler 2% |

![real-a-time](real-a-time.svg)
"""


def test_a_page_is_golden() -> None:
    """A column in which no cell has a figure is not there: nobody compared with serial, and the load is not open."""
    table = Table("real", LOAD, "alternate", "alternate", (PLAIN,), (SPLIT,))
    assert table_page(table, ORIGIN, plots=["real-a-time.svg"]) == PAGE


def test_an_open_load_shows_goodput_and_when_its_last_request_came() -> None:
    load = replace(LOAD, load=Load("C", (Arrival(0, 16, 4), Arrival(2_500_000, 16, 4))), is_open=True)
    compared = Compared(Ratio(0.954, 0.93, 0.97, 5), goodput=Ratio(0.98, 0.98, 0.98, 1))
    cell = replace(SPLIT, best=compared, loss=None)
    page = table_page(Table("real", load, "alternate", "alternate", (PLAIN,), (cell,)), ORIGIN)
    assert "2 requests, the last of them after 2.5 s; prompts of 16 tokens, outputs of 4;" in page
    assert "| whole run | goodput | TTFT" in page


def test_where_rows_ride_in_the_best_plan_the_best_without_is_shown_beside() -> None:
    """Ratios to both, each with its bound, under names that tell them apart."""
    cell = replace(SPLIT, apart=Compared(Ratio(1.31, 1.31, 1.31, 1), Ratio(1.4, 1.4, 1.4, 1), 1.05))
    page = table_page(Table("real", LOAD, "fused", "alternate", (PLAIN,), (cell,)), ORIGIN)
    assert "all ratios are to it, but those under **apart**, which are to `alternate`" in page
    assert "| steady / bound | apart: whole run | apart: steady state | apart: bound | apart: steady / bound |" in page
    assert "| 0.95 | 1.31 | 1.40 | 1.05 | 1.33 |" in page


def test_one_token_outputs_have_no_time_per_token() -> None:
    cell = replace(SPLIT, latency=Latency(1.0, 2.0, None, None))
    page = table_page(
        Table("real", LOAD, "alternate", "alternate", (replace(PLAIN, latency=cell.latency),), (cell,)), ORIGIN
    )
    assert "TPOT" not in page


def test_a_cell_that_other_programs_slowed_down_says_so() -> None:
    table = Table("real", LOAD, "alternate", "alternate", (PLAIN,), (SPLIT, replace(SPLIT, slowdown=1.31)))
    assert "| CPU of a core | slowed by others |" in table_page(table, ORIGIN)
    assert "| edge 98%, scheduler 2% | 1.31 |" in table_page(table, ORIGIN)
