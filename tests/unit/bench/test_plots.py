"""Plots are written where a table has them, and the same figures give the same file."""

from pathlib import Path

from edgeweave.interleave.nouns import BubbleCause
from edgeweave.sim.load import Arrival, Load
from weaving.answers import Latency
from weaving.cells import Cell, Compared, Table
from weaving.loads import BenchLoad, Steady
from weaving.places import Place
from weaving.plots import write_plots
from weaving.ratios import Ratio

LOAD = BenchLoad("A", "balanced", Load("A", (Arrival(0, 256, 32),)), 8, Steady.REPLENISHED)


def _cell(place: Place, plan: str) -> Cell:
    latency = Latency(1.0, 2.0, None, None)
    bubbles = {BubbleCause.LINK: 0.1, BubbleCause.GRACE: 0.001}
    return Cell(place, plan, 1, 1.0, latency, 0.9, bubbles, {}, 1.0, best=Compared(None, Ratio(0.9, 0.9, 0.9, 1), 1.0))


def _table(*places: Place) -> Table:
    return Table(
        "real",
        LOAD,
        "alternate",
        "alternate",
        (),
        tuple(_cell(place, plan) for place in places for plan in ("serial", "2p1d")),
    )


def test_several_distances_make_a_line(tmp_path: Path) -> None:
    names = write_plots(_table(Place(0.0), Place(1000.0), Place(1000.0, has_tls=True)), tmp_path)
    assert names == ["real-a-ratio.svg", "real-a-time.svg"]
    ratio, time = ((tmp_path / name).read_text(encoding="utf-8") for name in names)
    assert all(f">{word}<" in ratio for word in ("serial", "2p1d", "bound", "1,000", "km between site and cloud"))
    assert ">1,000 km, TLS, 2p1d<" in time


def test_causes_that_cannot_be_seen_are_not_named(tmp_path: Path) -> None:
    """One distance has no line, but bars."""
    (name,) = write_plots(_table(Place(1000.0)), tmp_path)
    content = (tmp_path / name).read_text(encoding="utf-8")
    assert ">link<" in content
    assert ">grace<" not in content


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    contents = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        contents.append([(folder / name).read_bytes() for name in write_plots(_table(Place(0.0), Place(1.0)), folder)])
    assert contents[0] == contents[1]
