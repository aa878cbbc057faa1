"""Metrics of all services for Prometheus: names, counts, and the page `/metrics`.

A meter counts while a service works, in plain numbers; a collector reads meters and cores when somebody asks. Knows
what is told under which name. Does not know transports of the mesh, nor any framework.
"""

from edgeweave.metrics.engine_collector import EngineCollector
from edgeweave.metrics.gateway_collector import GatewayCollector
from edgeweave.metrics.http_meter import HttpMeter
from edgeweave.metrics.listener import metrics_served
from edgeweave.metrics.own_meter import OwnMeter
from edgeweave.metrics.page import CONTENT_TYPE, PATH, page, registry_of
from edgeweave.metrics.scheduler_collector import SchedulerCollector
from edgeweave.metrics.scheduler_meter import SchedulerMeter

__all__ = [
    "CONTENT_TYPE",
    "PATH",
    "EngineCollector",
    "GatewayCollector",
    "HttpMeter",
    "OwnMeter",
    "SchedulerCollector",
    "SchedulerMeter",
    "metrics_served",
    "page",
    "registry_of",
]
