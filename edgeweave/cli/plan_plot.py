"""The picture of `edgeweave plan`: throughput over distance.

Knows matplotlib, which no other part needs. The same recommendation gives the same file, byte by byte.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from edgeweave.cli.plan_advice import in_percent
from edgeweave.sim.curves import DRAWN_UP_TO_KM, Curve, Curves
from edgeweave.sim.recommend import Recommendation

INK, GREY, ACCENT, BAD = "#1f2933", "#7b8794", "#0b69a3", "#ba2525"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "edgeweave",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
OTHER_LINES = ("--", "-.", ":", (0, (1, 1)))
LABEL_GAP = 0.045
"""Least distance between two labels at the ends of lines, as a ratio."""


def save_plot(found: Recommendation, curves: Curves, path: Path) -> None:
    """Write the picture to `path`, as its ending says."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure.add_subplot(), found, curves)
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(path, dpi=150, metadata=metadata)


def _draw(axes: Axes, found: Recommendation, curves: Curves) -> None:
    highest = max(1.0, *curves.ceiling.ratios, *curves.chosen.ratios)
    axes.set_xlim(0, DRAWN_UP_TO_KM)
    axes.set_ylim(0, highest + 0.1)
    axes.set_title(_title(found), loc="left", color=INK, fontsize=11)
    axes.set_xlabel("fibre between site and cloud, km")
    axes.set_ylabel("throughput, of the same model in one place")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda km, _: f"{km:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.0%}"))
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    _draw_lines(axes, curves)
    _mark_accepted(axes, found)
    _mark_distance(axes, found, top=highest + 0.1)
    _mark_reach(axes, found)


def _title(found: Recommendation) -> str:
    case = found.case
    return f"{case.load.name} on {case.profile.name}, {case.gbit_per_s:g} Gbit/s, {case.demand.group_rows(1)} a step"


def _draw_lines(axes: Axes, curves: Curves) -> None:
    axes.plot(curves.ceiling.distances_km, curves.ceiling.ratios, color=INK, linewidth=1.2)
    for curve, line in zip(curves.others, OTHER_LINES, strict=False):
        axes.plot(curve.distances_km, curve.ratios, color=GREY, linewidth=1.2, linestyle=line)
    axes.plot(curves.chosen.distances_km, curves.chosen.ratios, color=ACCENT, linewidth=2.4, marker="o", markersize=4)
    ends = [(curves.ceiling, INK, "any order at most"), (curves.chosen, ACCENT, f"{curves.chosen.name} (advised)")]
    ends += [(curve, GREY, curve.name) for curve in curves.others]
    heights = _apart([curve.ratios[-1] for curve, _, _ in ends])
    for (curve, color, text), height in zip(ends, heights, strict=True):
        _label_end(axes, curve, height, text=text, color=color)


def _label_end(axes: Axes, curve: Curve, height: float, *, text: str, color: str) -> None:
    axes.annotate(
        text,
        xy=(DRAWN_UP_TO_KM, curve.ratios[-1]),
        xytext=(DRAWN_UP_TO_KM * 1.025, height),
        color=color,
        va="center",
        annotation_clip=False,
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0},
    )


def _apart(heights: Sequence[float]) -> list[float]:
    """Return heights for labels in the same order, none closer to the next than a line of text."""
    placed: dict[int, float] = {}
    lowest = 0.0
    for index in sorted(range(len(heights)), key=lambda index: heights[index]):
        placed[index] = max(lowest, heights[index])
        lowest = placed[index] + LABEL_GAP
    return [placed[index] for index in range(len(heights))]


def _mark_accepted(axes: Axes, found: Recommendation) -> None:
    accepted = 1.0 - found.max_loss
    axes.axhline(accepted, color=BAD, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.text(
        DRAWN_UP_TO_KM * 0.995,
        accepted + 0.012,
        f"{in_percent(found.max_loss)} loss",
        color=BAD,
        ha="right",
        va="bottom",
    )


def _mark_distance(axes: Axes, found: Recommendation, *, top: float) -> None:
    distance_km = found.case.distance_km
    if distance_km > DRAWN_UP_TO_KM:
        return
    axes.axvline(distance_km, color=GREY, linewidth=0.8)
    axes.plot([distance_km], [found.chosen.ratio], marker="o", markersize=8, color=ACCENT)
    is_left = distance_km < DRAWN_UP_TO_KM / 2
    axes.annotate(
        f"asked: {distance_km:,.0f} km, {found.chosen.ratio:.0%}",
        xy=(distance_km, top),
        xytext=(6 if is_left else -6, -4),
        textcoords="offset points",
        ha="left" if is_left else "right",
        va="top",
    )


def _mark_reach(axes: Axes, found: Recommendation) -> None:
    if found.reach_km is None or found.reach_km > DRAWN_UP_TO_KM:
        return
    accepted = 1.0 - found.max_loss
    axes.plot([found.reach_km], [accepted], marker="D", markersize=7, color=BAD, zorder=5)
    is_left = found.reach_km < DRAWN_UP_TO_KM / 2
    axes.annotate(
        f"keeps {in_percent(accepted)} up to {found.reach_km:,} km",
        xy=(found.reach_km, accepted),
        xytext=(10 if is_left else -10, 9),
        textcoords="offset points",
        color=BAD,
        ha="left" if is_left else "right",
        zorder=4,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 1},
    )
