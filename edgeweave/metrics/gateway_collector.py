"""What the gateway tells when it is asked for its metrics."""

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from edgeweave.metrics.families import histograms, number, numbers
from edgeweave.metrics.http_meter import HttpMeter
from edgeweave.metrics.own_metrics import HttpMetric


class GatewayCollector(Collector):
    """Reads the meter of HTTP; `is_ready` says whether a request would be served now."""

    def __init__(self, meter: HttpMeter, *, is_ready: Callable[[], bool]) -> None:
        self._meter = meter
        self._is_ready = is_ready

    def collect(self) -> Iterator[Family]:
        """Yield every metric of the gateway."""
        yield numbers(HttpMetric.REQUESTS, self._meter.num_answered.items())
        yield histograms(HttpMetric.DURATION, (((path,), times) for path, times in self._meter.durations.items()))
        yield number(HttpMetric.IN_PROGRESS, self._meter.num_in_progress)
        yield number(HttpMetric.READY, self._is_ready())
