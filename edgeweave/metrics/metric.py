"""What a metric is: its name, and everything that the registry tells of it."""

from dataclasses import dataclass
from enum import Enum

REQUEST_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 320, 640)
TOKEN_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 10)
UNIT_BOUNDS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025),
    *(0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 10),
)
TOKENS_BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
ROWS_BOUNDS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


class Kind(Enum):
    """How the values of a metric move. Values are the words of the registry."""

    GAUGE = "gauge"
    """Up and down."""
    COUNTER = "counter"
    """Up only; it begins at 0 again when the process does."""
    HISTOGRAM = "histogram"
    """Counts of observed values by bucket, with their number and sum."""


class Source(Enum):
    """Which service measures a metric. Values are the words of the registry."""

    ALL = "all services"
    GATEWAY = "gateway"
    SCHEDULER = "scheduler"
    ENGINE = "edge, cloud"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `help` is one line, which Prometheus shows too; `bounds` are upper bounds of buckets, in `unit`."""

    name: str
    kind: Kind
    unit: str
    source: Source
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class By:
    """Makes the metrics that one source measures. Names are written in full, so that they are found by them."""

    source: Source

    def gauge(self, name: str, unit: str, help_: str, *labels: str) -> Metric:
        """Return a gauge."""
        return Metric(name, Kind.GAUGE, unit, self.source, help_, labels)

    def counter(self, name: str, unit: str, help_: str, *labels: str) -> Metric:
        """Return a counter."""
        return Metric(name, Kind.COUNTER, unit, self.source, help_, labels)

    def histogram(self, name: str, unit: str, help_: str, *labels: str, bounds: tuple[float, ...]) -> Metric:
        """Return a histogram with these upper bounds of its buckets."""
        return Metric(name, Kind.HISTOGRAM, unit, self.source, help_, labels, bounds)
