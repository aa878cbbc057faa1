"""Counts HTTP requests of the gateway.

Knows routes and statuses. Does not know what was asked, nor by whom.
"""

from collections import Counter

from edgeweave.metrics.histogram import Histogram
from edgeweave.metrics.own_metrics import HttpMetric

NO_ROUTE = "none"
NO_STATUS = "none"


class HttpMeter:
    """Requests that are being answered, and those that were."""

    def __init__(self) -> None:
        self.num_in_progress = 0
        self.num_answered: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, Histogram] = {}

    def begin(self) -> None:
        """A request came."""
        self.num_in_progress += 1

    def end(self, route: str | None, *, status: int | None, duration_us: int) -> None:
        """Its answer ended. `route` is a route's own path, not what the client asked for: those have no end."""
        self.num_in_progress -= 1
        path = NO_ROUTE if route is None else route
        self.num_answered[path, NO_STATUS if status is None else str(status)] += 1
        if path not in self.durations:
            self.durations[path] = Histogram(HttpMetric.DURATION)
        self.durations[path].observe(duration_us)
