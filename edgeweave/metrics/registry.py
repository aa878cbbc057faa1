"""The registry: every metric of every service, each once. `docs/telemetry.md` is the same for people."""

from edgeweave.metrics.mesh_metrics import LinkMetric, MeshMetric, PlanMetric, TimeMetric
from edgeweave.metrics.metric import Metric
from edgeweave.metrics.own_metrics import BuildMetric, EngineMetric, HttpMetric
from edgeweave.metrics.request_metrics import RequestMetric

GROUPS: tuple[type, ...] = (
    RequestMetric,
    MeshMetric,
    TimeMetric,
    LinkMetric,
    PlanMetric,
    EngineMetric,
    HttpMetric,
    BuildMetric,
)

METRICS: tuple[Metric, ...] = tuple(
    metric for group in GROUPS for metric in vars(group).values() if isinstance(metric, Metric)
)

PROCESS_METRICS = (
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
)
"""What the Prometheus client tells of the process that runs, under the names of all Prometheus clients."""


def metric_named(name: str) -> Metric | None:
    """Return the metric whose samples may be called `name`: a histogram has three names."""
    for metric in METRICS:
        endings = ("_bucket", "_count", "_sum") if metric.bounds else ("",)
        if name in {metric.name + ending for ending in endings}:
            return metric
    return None
