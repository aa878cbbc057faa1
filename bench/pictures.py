"""Draws the pictures of docs/weaving.md from the simulator: `python bench/pictures.py [FOLDER]`, half a minute.

Knows what each picture shows. Everything in them comes from the real cores in virtual time, on the `npu` profile. No
rows ride in chunks: the pictures show how steps and chunks cover each other, and the bound is that of rows apart.
"""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Fuse, Stage, Timeline, UnitRan
from edgeweave.interleave.plans import PlanRequest, kind_named
from edgeweave.interleave.scheduler_events import FromEngine, SchedulerEvent
from edgeweave.sim.bounds import Work, bound
from edgeweave.sim.case import Case
from edgeweave.sim.loads import load_named
from edgeweave.sim.mesh import LOCAL_US, SimMesh
from edgeweave.sim.profile import NPU
from edgeweave.sim.run import Outcome, simulate

FOLDER = Path("docs/images")
LOADS = {"balanced": 8, "prefill-rich": 16}
"""Loads and the rows of their decode steps."""
TITLES = {"balanced": "load A, balanced", "prefill-rich": "load B, prefill-rich"}
PLANS = {"serial": "#9aa3ad", "1p1d": "#d9730d", "2p1d": "#8a63d2", "adaptive": "#2563a8"}
COLOURS = {Stage.STEP: "#2563a8", Stage.TURNAROUND: "#2563a8", Stage.SEGMENT: "#e8a25c"}
PREFILL = "#e8a25c"
SPAN_US = 420_000
GBIT_PER_S = 10.0


@dataclass(slots=True)
class WatchedMesh(SimMesh):
    """A simulated mesh that keeps what its engines ran."""

    ran: dict[Side, list[UnitRan]] = field(default_factory=lambda: {side: [] for side in Side})

    def tell(self, event: SchedulerEvent) -> None:
        """Keep the units of a timeline on its way to the scheduler."""
        if isinstance(event, FromEngine) and isinstance(event.message, Timeline):
            self.ran[event.side] += event.message.ran
        SimMesh.tell(self, event)


def plan_named(name: str, *, num_segments: int | None = None) -> PlanRequest:
    """Return a plan under which no rows ride."""
    return PlanRequest(kind_named(name), num_segments=num_segments, fuse=Fuse.NEVER)


def case_of(load: str, distance_km: float) -> Case:
    """Return a load of the bench over so much fibre."""
    rows = LOADS[load]
    limits = Limits(max_batch_size=rows, max_prefill_tokens=512, max_seq_len=640, chunk_tokens=512, max_waiting=1 << 30)
    return Case(NPU, load_named(load), limits, distance_km, GBIT_PER_S)


def given(load: str, plan: str, distance_km: float, *, num_segments: int | None = None) -> Outcome:
    """Return what a plan gives."""
    return case_of(load, distance_km).simulate(plan_named(plan, num_segments=num_segments))


def one_place(load: str) -> Outcome:
    """Return the best that one place gives: prefill first until the batch is full, in large pieces."""
    case = case_of(load, 0)
    return simulate(replace(case.shape(plan_named("adaptive")), one_way_us=None, piece_tokens=1024), case.load)


def bound_of(load: str, distance_km: float) -> float:
    """Return the bound of one decode group, from the arithmetic of the profile."""
    case = case_of(load, distance_km)
    demand = case.demand
    body_us, num_steps = demand.body_us(num_groups=1), demand.num_steps()
    return bound(Work(demand.centralized_us, body_us, demand.body_prefill_us, num_steps, case.step_return_us))


def draw_timeline() -> Figure:
    """Draw what both engines do under `serial` and `adaptive`, in the middle of a load."""
    figure = Figure(figsize=(9.2, 3.6), layout="constrained")
    for axes, plan in zip(figure.subplots(2, 1, sharex=True), ("serial", "adaptive"), strict=True):
        ran = played("prefill-rich", plan, 1000)
        begin_us = ran[Side.CLOUD][len(ran[Side.CLOUD]) // 2].begin_us
        for height, side in ((0, Side.CLOUD), (1, Side.EDGE)):
            for unit in ran[side]:
                if unit.end_us > begin_us and unit.begin_us < begin_us + SPAN_US:
                    _draw_unit(axes, unit, height=height, begin_us=begin_us)
        axes.set_yticks([0, 1], ["cloud", "edge"])
        axes.set_title(plan, loc="left", fontsize=10)
        axes.set_xlim(0, SPAN_US / 1000)
        _bare(axes)
    axes.set_xlabel("ms; blue: decode, orange: prefill, white: nothing. 1,000 km, load B")
    return figure


def played(load: str, plan: str, distance_km: float) -> dict[Side, list[UnitRan]]:
    """Return what the engines ran of a load whose requests come as places are free."""
    case = case_of(load, distance_km)
    drawn = case.load
    waiting = list(drawn.arrivals)
    mesh: WatchedMesh

    def submit() -> None:
        arrival = waiting.pop(0)
        mesh.submit(
            str(len(waiting)),
            num_prompt_tokens=arrival.num_prompt_tokens,
            num_output_tokens=arrival.num_output_tokens,
        )

    mesh = WatchedMesh(
        case.shape(plan_named(plan)),
        lambda emit, _now_us: mesh.events.after(0, submit) if emit.finish is not None and waiting else None,
    )
    for _ in range(drawn.max_open or len(waiting)):
        mesh.events.at(LOCAL_US, submit)
    mesh.events.run()
    return mesh.ran


def _draw_unit(axes: Axes, unit: UnitRan, *, height: int, begin_us: int) -> None:
    begin_ms, length_ms = (unit.begin_us - begin_us) / 1000, (unit.end_us - unit.begin_us) / 1000
    colour = COLOURS.get(unit.stage, PREFILL)
    axes.broken_barh([(begin_ms, length_ms)], (height - 0.36, 0.72), facecolors=colour, edgecolor="white", lw=0.3)


def draw_distance() -> Figure:
    """Draw the ratio to one place by distance, for each plan, and the bound."""
    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    distances_km = (0, 250, 500, 1000, 1500, 2000, 3000, 4000, 5000, 7000, 10_000)
    for axes, load in zip(figure.subplots(1, 2, sharey=True), LOADS, strict=True):
        best = one_place(load).tokens_per_s
        bounds = [bound_of(load, km) for km in distances_km]
        axes.plot(distances_km, bounds, color="black", ls=":", lw=1.4, label="bound, one group")
        for plan, colour in PLANS.items():
            ratios = [given(load, plan, km).tokens_per_s / best for km in distances_km]
            axes.plot(distances_km, ratios, color=colour, lw=2.2 if plan == "adaptive" else 1.4, label=plan)
        axes.set_title(TITLES[load], loc="left", fontsize=10)
        axes.set_xlabel("km of fibre")
        _bare(axes)
    figure.axes[0].set_ylabel("throughput to one place, rows apart")
    figure.axes[1].legend(frameon=False, fontsize=9)
    return figure


def draw_segments() -> Figure:
    """Draw busy and throughput by the number of segments of a fixed plan, beside the adaptive plan."""
    figure = Figure(figsize=(9.2, 3.4), layout="constrained")
    counts = (1, 2, 3, 4, 6, 8, 12, 16)
    for axes, load in zip(figure.subplots(1, 2, sharey=True), LOADS, strict=True):
        best = one_place(load).tokens_per_s
        runs = [given(load, "2p1d", 1000, num_segments=count) for count in counts]
        adaptive = given(load, "adaptive", 1000)
        places = range(len(counts))
        axes.plot(places, [run.busy_share for run in runs], color="#9aa3ad", marker="o", ms=4, label="2p1d: busy")
        ratios = [run.tokens_per_s / best for run in runs]
        axes.plot(places, ratios, color=PLANS["2p1d"], marker="o", ms=4, label="2p1d: throughput to one place")
        label = "adaptive: throughput to one place"
        axes.axhline(adaptive.tokens_per_s / best, color=PLANS["adaptive"], lw=2.2, label=label)
        axes.set_xticks(list(places), [str(count) for count in counts])
        axes.set_title(f"{TITLES[load]}, 1,000 km", loc="left", fontsize=10)
        axes.set_xlabel("segments for each chunk")
        _bare(axes)
    figure.axes[1].legend(frameon=False, fontsize=9, loc="lower left")
    return figure


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e8eb", lw=0.6)
    axes.set_axisbelow(True)


def main() -> None:
    """Draw all pictures into the folder."""
    mpl.rcParams.update({"svg.hashsalt": "edgeweave", "svg.fonttype": "none", "font.size": 9})
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, draw in (("timeline", draw_timeline), ("distance", draw_distance), ("segments", draw_segments)):
        path = folder / f"weave-{name}.svg"
        draw().savefig(path, metadata={"Date": None})
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
