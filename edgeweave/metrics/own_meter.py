"""What an engine counts of itself, over all its sessions."""

from dataclasses import dataclass, field

from edgeweave.interleave.nouns import Timeline
from edgeweave.metrics.engine_meter import EngineMeter
from edgeweave.metrics.lane_meter import CountedLane, LaneMeter
from edgeweave.metrics.own_metrics import EngineMetric


@dataclass(slots=True)
class OwnMeter:
    """The meters of one engine: where its time goes, and what its lanes carry."""

    time: EngineMeter = field(default_factory=lambda: EngineMeter(EngineMetric.UNIT_TIME, EngineMetric.STEP_ROWS))
    lanes: LaneMeter = field(default_factory=LaneMeter)

    def take(self, timeline: Timeline) -> None:
        """The engine reports what it did."""
        self.time.take(timeline)

    def watch(self, lane: CountedLane) -> None:
        """A lane was opened."""
        self.lanes.watch(lane)
