"""Numbers as what the Prometheus client prints.

Knows the classes of that library for values. A sample is the values of its labels, in their order, and a number.
"""

from collections.abc import Iterable
from itertools import accumulate

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

from edgeweave.metrics.histogram import Histogram
from edgeweave.metrics.metric import Kind, Metric

Labels = tuple[str, ...]
_ABOVE_ALL = "+Inf"


def seconds(time_us: int) -> float:
    """Return microseconds as the unit that Prometheus wants."""
    return time_us / 1_000_000


def numbers(metric: Metric, samples: Iterable[tuple[Labels, float]]) -> Family:
    """Return a gauge or counter with its samples."""
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family: CounterMetricFamily | GaugeMetricFamily = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(_checked(labels, metric), value)
    return family


def number(metric: Metric, value: float) -> Family:
    """Return a gauge or counter that has no labels."""
    return numbers(metric, [((), value)])


def histograms(metric: Metric, samples: Iterable[tuple[Labels, Histogram]]) -> Family:
    """Return a histogram with its samples."""
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    bounds = [*(str(float(bound)) for bound in metric.bounds), _ABOVE_ALL]
    for labels, observed in samples:
        buckets = list(zip(bounds, accumulate(observed.counts), strict=True))
        family.add_metric(_checked(labels, metric), buckets, observed.sum)
    return family


def histogram(observed: Histogram) -> Family:
    """Return a histogram that has no labels."""
    return histograms(observed.metric, [((), observed)])


def _checked(labels: Labels, metric: Metric) -> Labels:
    if len(labels) != len(metric.labels):
        raise ValueError(f"{metric.name} has the labels {metric.labels} and got {labels}")
    return labels
