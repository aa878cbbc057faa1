"""What one engine did over a stretch of time: the difference of two states of it.

Knows sums and shares. Does not know who asked, nor how the mesh was doing as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edgeweave.client.mesh_state import EngineState, UnitSum
from edgeweave.interleave.nouns import BubbleCause, Stage

_NONE = UnitSum(0, 0)


@dataclass(frozen=True, slots=True)
class EngineUse:
    """What one engine did, in microseconds and bytes; `units` by stage and number of rows.

    `reported_us` is the time between the two reports by the engine's own clock. What was open at the first report ended
    since and counts whole; what is open at the second does not count yet.
    """

    busy_us: int
    bubbles_us: dict[BubbleCause, int]
    units: dict[tuple[Stage, int], UnitSum]
    idle_us: int = 0
    reported_us: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0

    @property
    def open_us(self) -> int:
        """Time in which a sequence was open."""
        return self.busy_us + sum(self.bubbles_us.values())

    @property
    def counted_us(self) -> int:
        """Time that is accounted for: busy, bubbles and idle."""
        return self.open_us + self.idle_us

    @property
    def busy_share(self) -> float:
        """Share of the time with a sequence open in which a unit ran."""
        return self.busy_us / self.open_us if self.open_us else 0.0

    @property
    def largest_bubble(self) -> BubbleCause | None:
        """The cause that took most time; `None` without bubbles."""
        return max(self.bubbles_us, key=lambda cause: self.bubbles_us[cause], default=None)

    def share(self, time_us: int) -> float | None:
        """Return which share of the time that is accounted for `time_us` is; `None` where none is."""
        return time_us / self.counted_us if self.counted_us else None

    def stage_us(self, *stages: Stage) -> int:
        """Return the time of all units of these stages."""
        return sum(unit.total_us for (stage, _), unit in self.units.items() if stage in stages)

    def rows(self, stage: Stage) -> dict[int, UnitSum]:
        """Return the units of `stage` by their number of rows; those without a live row are left out."""
        return rows_of(self.units, stage)


def engine_use(before: EngineState | None, after: EngineState) -> EngineUse:
    """Return what an engine did between two states of one session; without `before`, since the session began."""
    then = before or _nothing_of(after)
    bubbles_us = {cause: us - then.bubbles_us.get(cause, 0) for cause, us in after.bubbles_us.items()}
    units = {kind: _grown(then.units.get(kind, _NONE), unit) for kind, unit in after.units.items()}
    return EngineUse(
        busy_us=after.busy_us - then.busy_us,
        bubbles_us={cause: us for cause, us in bubbles_us.items() if us},
        units={kind: unit for kind, unit in units.items() if unit.num_units},
        idle_us=after.idle_us - then.idle_us,
        reported_us=after.clock_us - then.clock_us,
        received_bytes=after.received_bytes - then.received_bytes,
        sent_bytes=after.sent_bytes - then.sent_bytes,
    )


def rows_of(units: Mapping[tuple[Stage, int], UnitSum], stage: Stage) -> dict[int, UnitSum]:
    """Return the units of `stage` by their number of rows; those without a live row are left out."""
    return {num_rows: unit for (each, num_rows), unit in units.items() if each is stage and num_rows}


def _nothing_of(engine: EngineState) -> EngineState:
    """Return the state in which the session of `engine` began, as far as its sums tell when that was."""
    counted_us = engine.busy_us + sum(engine.bubbles_us.values()) + engine.idle_us
    return EngineState(
        busy_us=0,
        bubbles_us={},
        idle_us=0,
        num_units=0,
        num_skipped_rows=0,
        num_blocks=engine.num_blocks,
        num_free_blocks=engine.num_blocks,
        received_bytes=0,
        sent_bytes=0,
        clock_us=max(0, engine.clock_us - counted_us),
    )


def _grown(before: UnitSum, after: UnitSum) -> UnitSum:
    return UnitSum(after.num_units - before.num_units, after.total_us - before.total_us)
