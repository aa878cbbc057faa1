"""Metrics of the time of engines as they are now, under the names of whoever tells them."""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric as Family

from edgeweave.metrics.engine_meter import EngineMeter
from edgeweave.metrics.families import histograms, numbers, seconds
from edgeweave.metrics.mesh_metrics import TimeMetric
from edgeweave.metrics.own_metrics import EngineMetric


def engine_families(
    names: type[TimeMetric] | type[EngineMetric], engines: Mapping[str, EngineMeter]
) -> Iterator[Family]:
    """Yield where the time of each of `engines` went, by its name."""
    yield numbers(names.BUSY, [((name,), seconds(engine.busy_us)) for name, engine in engines.items()])
    yield numbers(names.IDLE, [((name,), seconds(engine.idle_us)) for name, engine in engines.items()])
    bubbles = [
        ((name, kind.value, cause.name.lower()), seconds(length_us))
        for name, engine in engines.items()
        for (kind, cause), length_us in engine.bubbles_us.items()
    ]
    yield numbers(names.BUBBLES, bubbles)
    units = [
        ((name, stage.name.lower()), times) for name, engine in engines.items() for stage, times in engine.units.items()
    ]
    yield histograms(names.UNIT_TIME, units)
    yield histograms(names.STEP_ROWS, [((name,), engine.step_rows) for name, engine in engines.items()])
