"""Registries of all kinds of services, each with something to tell under every name that it has."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from edgeweave.client.mesh_state import SessionState
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Bubble, BubbleCause, FinishReason, Stage, Timeline
from edgeweave.metrics import EngineCollector, GatewayCollector, HttpMeter, OwnMeter, SchedulerCollector, registry_of
from edgeweave.metrics.metric import Source
from fakes.driven import sample
from fakes.metered import MeteredScheduler, ran


def scheduler_registry() -> CollectorRegistry:
    """Return that of a scheduler with something of everything."""
    mesh = MeteredScheduler()
    mesh.ask("too early")
    mesh.connect()
    mesh.decoding("one", "two")
    mesh.step_done(1, sample(1, 1, finish=FinishReason.STOP))
    bubble = Bubble(0, 5, BubbleCause.AWAIT_TASK)
    for side in Side:
        mesh.said(side, Timeline((ran(Stage.STEP, 5, 9), ran(Stage.SEGMENT, 9, 12)), (bubble,), 0, 12))
    return registry_of("scheduler", SchedulerCollector(mesh.meter, state=lambda: SessionState.READY))


def engine_registry() -> CollectorRegistry:
    """Return that of an engine that ran one unit."""
    meter = OwnMeter()
    meter.take(Timeline((ran(Stage.TURNAROUND, 5, 9),), (), 5, 9))
    return registry_of("edge", EngineCollector("edge", meter))


def gateway_registry() -> CollectorRegistry:
    """Return that of a gateway that answered one request."""
    meter = HttpMeter()
    meter.begin()
    meter.end("/v1/models", status=200, duration_us=5)
    return registry_of("gateway", GatewayCollector(meter, is_ready=lambda: True))


REGISTRIES: dict[Source, Callable[[], CollectorRegistry]] = {
    Source.SCHEDULER: scheduler_registry,
    Source.ENGINE: engine_registry,
    Source.GATEWAY: gateway_registry,
}
