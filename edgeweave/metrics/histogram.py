"""A histogram as plain numbers: cheap to observe, read when somebody asks.

Knows buckets. Does not know labels: who has them keeps one histogram for each.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

from edgeweave.metrics.metric import Metric

_US_PER_S = 1_000_000


@dataclass(slots=True)
class Histogram:
    """Observed values of one metric, with one more bucket than bounds: for values above all of them.

    Where the unit is seconds, whole microseconds are observed, so that sums are exact.
    """

    metric: Metric
    total: int = 0
    counts: list[int] = field(init=False)
    _bounds: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with empty buckets."""
        self._bounds = [round(bound * self._scale) for bound in self.metric.bounds]
        self.counts = [0] * (len(self._bounds) + 1)

    def observe(self, value: int) -> None:
        """Count one value; a bound belongs to the bucket below it."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def num_observed(self) -> int:
        """How many values were observed."""
        return sum(self.counts)

    @property
    def sum(self) -> float:
        """Sum of all values, in the unit of the metric."""
        return self.total / self._scale

    @property
    def _scale(self) -> int:
        return _US_PER_S if self.metric.unit == "seconds" else 1
