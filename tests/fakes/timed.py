"""Plays a mesh over a clean link with units of fixed length: what happens, happens in the order of its time.

Knows how long a trip and each kind of unit take. At one moment arrivals come before ends, in the order of the streams.
"""

from collections import deque
from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.effects import RunHead, RunSegment, RunTail
from edgeweave.interleave.nouns import Timeline, UnitRan
from edgeweave.interleave.scheduler_events import FromEngine
from fakes.mesh import STREAMS, Mesh
from fakes.shells import CloudShell, EdgeShell

LOCAL = ("to_edge", "from_edge")
"""Streams that stay on the site."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Microseconds of one way over the link, and of each kind of unit."""

    one_way_us: int = 5_000
    head_us: int = 500
    tail_us: int = 1_000
    segment_us: int = 3_000
    step_us: int = 4_000


@dataclass(slots=True)
class TimedMesh:
    """A mesh and when each thing that is on its way arrives.

    Engines report every `report_every_us` while anything happens, or only at the end where that is `None`.
    """

    mesh: Mesh
    lengths: Lengths = field(default_factory=Lengths)
    report_every_us: int | None = None
    _reported_us: int = 0
    _arrivals: dict[str, deque[int]] = field(default_factory=lambda: {name: deque() for name in STREAMS})
    _ends: dict[str, int] = field(default_factory=dict)

    def play(self) -> dict[Side, tuple[UnitRan, ...]]:
        """Play until nothing is left to do; return what each engine ran."""
        self.play_until(None)
        return {side: self._report(side, shell).ran for side, (_, shell) in zip(Side, self.mesh.shells, strict=True)}

    def play_until(self, stop_us: int | None) -> None:
        """Play until nothing is left to do, or until the next thing would happen at `stop_us` or later."""
        self._note()
        while (due := min(self._due(), default=None)) is not None and (stop_us is None or due[0] < stop_us):
            self._report_due(due[0])
            self.mesh.now_us, _, move = due
            if move in self._arrivals:
                self._arrivals[move].popleft()
            self._ends.pop(move, None)
            self.mesh.move(move)
            self._note()

    def report(self) -> None:
        """Let both engines tell what they did so far."""
        for side, (_, shell) in zip(Side, self.mesh.shells, strict=True):
            self._report(side, shell)

    def _report_due(self, until_us: int) -> None:
        """Report whenever it was time to before `until_us`."""
        while self.report_every_us is not None and self._reported_us + self.report_every_us < until_us:
            self._reported_us += self.report_every_us
            self.mesh.now_us = max(self.mesh.now_us, self._reported_us)
            self.report()

    def _due(self) -> list[tuple[int, int, str]]:
        """Return time, rank and name of each move that is possible."""
        due = [(times[0], rank, name) for rank, (name, times) in enumerate(self._arrivals.items()) if times]
        due += [(end_us, len(STREAMS), move) for move, end_us in self._ends.items()]
        wake_us = self.mesh.cloud.core.wake_us(now_us=self.mesh.now_us)
        return due if wake_us is None else [*due, (wake_us, len(STREAMS) + 1, "wake_cloud")]

    def _note(self) -> None:
        """Give what left just now its time of arrival, and a unit that began its end."""
        for name, stream in self.mesh.streams.items():
            trip_us = 0 if name in LOCAL else self.lengths.one_way_us
            while len(self._arrivals[name]) < len(stream):
                self._arrivals[name].append(self.mesh.now_us + trip_us)
        for name, shell in self.mesh.shells:
            if shell.running is not None:
                self._ends.setdefault(f"end_{name}", self.mesh.now_us + self._length_us(shell))

    def _length_us(self, shell: EdgeShell | CloudShell) -> int:
        match shell.running:
            case RunHead():
                return self.lengths.head_us
            case RunTail():
                return self.lengths.tail_us
            case RunSegment():
                return self.lengths.segment_us
            case _:
                return self.lengths.step_us

    def _report(self, side: Side, shell: EdgeShell | CloudShell) -> Timeline:
        timeline = shell.core.take_timeline(now_us=self.mesh.now_us)
        self.mesh.tell(FromEngine(side, timeline))
        return timeline


def text_of(ran: dict[Side, tuple[UnitRan, ...]]) -> str:
    """Return what both engines ran, as two columns in order of time, and then as a tree: units of the mesh, pieces."""
    units = sorted(
        ((unit.begin_us, side.value, unit) for side in Side for unit in ran[side]), key=lambda item: item[:2]
    )
    return "\n".join(["order", *_order(units), "", "tree", *_tree(units), ""])


def _order(units: list[tuple[int, str, UnitRan]]) -> list[str]:
    lines = [f"  {'begin':>7} {'end':>7}  {'edge':<28}cloud"]
    for begin_us, side, unit in units:
        column = f"{_what(unit)} {_lane(unit)}"
        times = f"  {begin_us / 1000:7.3f} {unit.end_us / 1000:7.3f}  "
        lines.append(times + (column if side == Side.EDGE.value else f"{'':<28}{column}"))
    return lines


def _tree(units: list[tuple[int, str, UnitRan]]) -> list[str]:
    branches: dict[str, list[str]] = {}
    for begin_us, side, unit in units:
        leaf = f"    {begin_us / 1000:7.3f}  {side:<5}  {_what(unit)}, {unit.num_rows} rows, {unit.num_tokens} tokens"
        branches.setdefault(_lane(unit), []).append(leaf)
    return [line for name, leaves in branches.items() for line in (f"  {name}", *leaves)]


def _what(unit: UnitRan) -> str:
    return f"{unit.stage.name.lower()} [{unit.start}, {unit.stop})"


def _lane(unit: UnitRan) -> str:
    if unit.rider is not None:
        return f"chunk {unit.chunk} with step {unit.rider.step}"
    return f"chunk {unit.chunk}" if unit.chunk is not None else f"step {unit.step}"
