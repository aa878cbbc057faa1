"""Plots of a table as SVG: the ratio against distance with its bound, and where the cloud's time went.

Knows matplotlib, which only the bench needs. The same figures give the same file.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgeweave.interleave.nouns import BubbleCause
from weaving.cells import Cell, Table
from weaving.use import cause_words

_COLORS = {"serial": "#9e9e9e", "1p1d": "#e6a23c", "2p1d": "#4a90d9", "adaptive": "#2e8b57", "apart": "#9b6fc4"}
_CAUSE_COLORS = ("#8d6e63", "#bdbdbd", "#d9534f", "#f0ad4e", "#7e57c2", "#212121")
_PLACES_OF_A_LINE = 2


def write_plots(table: Table, folder: Path) -> list[str]:
    """Write the plots of `table` into `folder`; return the names of their files."""
    stem = f"{table.engines}-{table.load.name.lower()}"
    written = []
    with mpl.rc_context({"svg.hashsalt": "edgeweave", "svg.fonttype": "none", "font.size": 9}):
        if len(_distances(table.split)) >= _PLACES_OF_A_LINE:
            written.append(_save(_ratio_figure(table), folder / f"{stem}-ratio.svg"))
        written.append(_save(_time_figure(table), folder / f"{stem}-time.svg"))
    return written


def _save(figure: Figure, path: Path) -> str:
    figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return path.name


def _ratio_figure(table: Table) -> Figure:
    figure = Figure(figsize=(7, 4))
    axes = figure.add_subplot()
    cells = [cell for cell in table.split if not cell.place.has_tls]
    for plan in dict.fromkeys(cell.variant for cell in cells):
        _draw_plan(axes, plan, [cell for cell in cells if cell.variant == plan])
    bounded = [cell for cell in cells if not math.isnan(_bound(cell)) and cell.variant == cells[-1].variant]
    if bounded:
        axes.plot(_places(bounded), [_bound(cell) for cell in bounded], "k--", label="bound", linewidth=1)
    distances = _distances(cells)
    axes.set_xticks(range(len(distances)), [f"{distance:,.0f}" for distance in distances])
    axes.axhline(1.0, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set_xlabel("km between site and cloud")
    axes.set_ylabel("throughput against the best of one place")
    axes.set_title(f"Load {table.load.name}, {table.load.title}, {table.engines} engines")
    axes.legend(frameon=False)
    return figure


def _draw_plan(axes: Axes, plan: str, cells: Sequence[Cell]) -> None:
    ratios = [_shown_ratio(cell) for cell in cells]
    axes.plot(range(len(cells)), ratios, marker="o", markersize=4, label=plan, color=_COLORS.get(plan))


def _shown_ratio(cell: Cell) -> float:
    """Return the steady state, or the whole run where there is none."""
    if cell.best is None:
        return math.nan
    ratio = cell.best.steady or cell.best.ratio
    return ratio.median if ratio is not None else math.nan


def _bound(cell: Cell) -> float:
    """Return the bound, which all plans at one place share; not a number where there is none."""
    return math.nan if cell.best is None or cell.best.bound is None else cell.best.bound


def _time_figure(table: Table) -> Figure:
    """Return bars of the cloud's open time: busy, and bubbles by cause."""
    figure = Figure(figsize=(7, 0.28 * len(table.split) + 1.4))
    axes = figure.add_subplot()
    names = [f"{cell.place}, {cell.variant}" for cell in table.split]
    left = [cell.busy_share for cell in table.split]
    axes.barh(names, left, color="#2e8b57", label="busy")
    for cause, color in zip(BubbleCause, _CAUSE_COLORS, strict=True):
        shares = [cell.bubbles.get(cause, 0.0) for cell in table.split]
        if any(share >= 0.005 for share in shares):  # noqa: PLR2004 - narrower than a line
            axes.barh(names, shares, left=left, color=color, label=cause_words(cause))
        left = [start + share for start, share in zip(left, shares, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the cloud's time with requests open")
    axes.set_title(f"Load {table.load.name}, {table.load.title}, {table.engines} engines")
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.4, -0.6 / figure.get_figheight()))
    return figure


def _places(cells: Sequence[Cell]) -> list[int]:
    return list(range(len(cells)))


def _distances(cells: Sequence[Cell]) -> list[float]:
    return sorted({cell.place.distance_km for cell in cells if cell.place.distance_km is not None})
