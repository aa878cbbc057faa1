"""What an engine tells when it is asked for its metrics."""

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from edgeweave.interleave.nouns import Lane
from edgeweave.metrics.engine_families import engine_families
from edgeweave.metrics.families import numbers
from edgeweave.metrics.own_meter import OwnMeter
from edgeweave.metrics.own_metrics import EngineMetric


class EngineCollector(Collector):
    """Reads the meter of the engine called `engine`: edge or cloud."""

    def __init__(self, engine: str, meter: OwnMeter) -> None:
        self._engine = engine
        self._meter = meter

    def collect(self) -> Iterator[Family]:
        """Yield every metric of the engine."""
        yield from engine_families(EngineMetric, {self._engine: self._meter.time})
        lanes = self._meter.lanes
        labels = {lane: (self._engine, lane.name.lower()) for lane in Lane}
        yield numbers(EngineMetric.SENT_BYTES, [(labels[lane], lanes.sent_bytes(lane)) for lane in Lane])
        yield numbers(EngineMetric.RECEIVED_BYTES, [(labels[lane], lanes.received_bytes(lane)) for lane in Lane])
        yield numbers(EngineMetric.LANES, [(labels[lane], lanes.num_opened[lane]) for lane in Lane])
