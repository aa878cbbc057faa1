"""The page `/metrics`: what a service tells.

It has one form, the text that every version of Prometheus reads. The client's other form, OpenMetrics, comes with `_`
where our names have `:`, and a name must not depend on who reads it.
"""

import asyncio
from collections.abc import Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from edgeweave.metrics.families import numbers
from edgeweave.metrics.own_metrics import BuildMetric

PATH = "/metrics"
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def registry_of(service: str, *collectors: Collector) -> CollectorRegistry:
    """Return a registry of what `collectors` of a service tell, of its build, and of its process."""
    registry = CollectorRegistry(auto_describe=False)
    for collector in (_Build(service), *collectors):
        registry.register(collector)
    ProcessCollector(registry=registry)
    return registry


async def page(registry: CollectorRegistry) -> bytes:
    """Return the metrics of `registry` as they are now; their type is `CONTENT_TYPE`.

    Between one metric and the next the event loop goes on: all of them take as long as a decode step does.
    """
    written = []
    for family in registry.collect():
        written.append(generate_latest(_One(family)))
        await asyncio.sleep(0)
    return b"".join(written)


class _One(Collector):
    """Tells one metric."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterable[Family]:
        return [self._family]


class _Build(Collector):
    def __init__(self, service: str) -> None:
        self._service = service

    def collect(self) -> Iterator[Family]:
        yield numbers(BuildMetric.INFO, [((self._service, version("edgeweave")), 1)])
