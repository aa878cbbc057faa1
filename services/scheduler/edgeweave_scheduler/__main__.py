"""The composition root of the scheduler: settings become objects, objects are served.

Run by `python -m edgeweave_scheduler` or `edgeweave serve scheduler`.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
import uvloop

from edgeweave.clock import MonotonicClock
from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.adaptive import Goal, Objective
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Fuse
from edgeweave.interleave.plans import PlanRequest, kind_named
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import StopAdmission
from edgeweave.metrics import SchedulerCollector, SchedulerMeter, metrics_served
from edgeweave.rpc.options import Keepalive
from edgeweave.rpc.server import GrpcServer
from edgeweave.settings import SchedulerSettings, load
from edgeweave.telemetry import configure_logging, span_processor, tracer_provider
from edgeweave.v1.scheduler_pb2 import DESCRIPTOR
from edgeweave.v1.scheduler_pb2_grpc import add_SchedulerServiceServicer_to_server
from edgeweave_scheduler.driver import Driver
from edgeweave_scheduler.keeper import SessionKeeper, SessionState
from edgeweave_scheduler.servicer import SchedulerServicer
from edgeweave_scheduler.tracing import Tracing

SCHEDULER_SERVICE: str = DESCRIPTOR.services_by_name["SchedulerService"].full_name
_log = structlog.get_logger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code: 0 after an orderly stop, 2 for what the user has to change."""
    try:
        settings = load(SchedulerSettings, sys.argv[1:] if argv is None else argv, os.environ)
        configure_logging(settings.log_level, fmt=settings.log_format, service="scheduler")
        uvloop.run(_serve(settings, make_core(settings)))
    except EdgeweaveError as error:
        print(f"edgeweave scheduler: {error}", file=sys.stderr)  # noqa: T201 - logs may not be set up yet
        return 2
    return 0


def make_core(settings: SchedulerSettings) -> SchedulerCore:
    """Return the core that `settings` describe.

    Raises:
        InvalidRequestError: the plan contradicts itself.
    """
    limits = Limits(
        max_prefill_batch_size=settings.max_prefill_batch_size,
        max_prefill_tokens=settings.max_prefill_tokens,
        max_seq_len=settings.max_seq_len,
        max_batch_size=settings.max_batch_size,
        prefill_ahead=settings.prefill_ahead,
        chunk_tokens=settings.chunk_tokens,
        long_prompt_tokens=settings.long_prompt_tokens,
        dynamic_prefill_size=settings.dynamic_prefill_size,
        max_waiting=settings.max_waiting,
        unit_deadline_ms=round(settings.unit_deadline_s * 1000),
    )
    plan = PlanRequest(
        kind_named(settings.plan),
        max_prefills=settings.max_prefills,
        max_steps=settings.max_steps,
        num_segments=settings.num_segments,
        fuse=Fuse[settings.fuse.upper()],
    )
    goal = Goal(Objective(settings.objective), _us(settings.tpot_slo_ms), _us(settings.ttft_slo_ms))
    return SchedulerCore(limits, plan, settings.max_grace_us, goal=goal)


def _us(time_ms: float | None) -> int | None:
    return round(time_ms * 1000) if time_ms is not None else None


async def _serve(settings: SchedulerSettings, core: SchedulerCore) -> None:
    clock, processor = MonotonicClock(), span_processor(settings.otlp_endpoint)
    provider = tracer_provider("scheduler", processor=processor)
    tracing = Tracing.of(core, processor=processor, max_spans=settings.keep_spans, clock=clock)
    meter = SchedulerMeter(core)
    driver = Driver(core, clock=clock, watchers=[meter.saw, *([tracing.recorder.saw] if tracing is not None else [])])
    health: asyncio.Queue[bool] = asyncio.Queue()
    keeper = SessionKeeper(
        driver,
        settings=settings,
        now_ms=lambda: time.time_ns() // 1_000_000,
        on_state=lambda state: health.put_nowait(state is SessionState.READY),
    )
    tracer = provider.get_tracer("edgeweave.scheduler")
    servicer = SchedulerServicer(driver, keeper=keeper, tracer=tracer, tracing=tracing)
    keepalive = Keepalive(settings.keepalive_s, settings.keepalive_s)
    server = GrpcServer(settings.listen, keepalive=keepalive, tls=settings.tls)
    server.add(SCHEDULER_SERVICE, partial(add_SchedulerServiceServicer_to_server, servicer))
    collector = SchedulerCollector(meter, state=lambda: keeper.state)
    try:
        async with metrics_served(settings.metrics_listen, "scheduler", collector):
            await server.start()
            await server.set_health(SCHEDULER_SERVICE, serving=False)
            _log.info("serving", port=server.port, edge=settings.edge, cloud=settings.cloud)
            await _serve_until_told(
                server, driver, drain_s=settings.drain_s, background=[keeper.run(), _follow(server, health)]
            )
    finally:
        if tracing is not None:
            tracing.recorder.close()
        provider.shutdown()
    _log.info("stopped")


async def _serve_until_told(
    server: GrpcServer, driver: Driver, *, drain_s: float, background: Sequence[Coroutine[Any, Any, None]]
) -> None:
    """Serve until a signal; then let open requests end and stop."""
    tasks = [asyncio.create_task(each) for each in background]
    try:
        await _signalled()
        await _drain(driver, drain_s=drain_s)
        await server.stop(grace_s=1.0)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _signalled() -> None:
    stopping = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopping.set)
    await stopping.wait()


async def _follow(server: GrpcServer, health: "asyncio.Queue[bool]") -> None:
    """Tell the health service whether a session serves."""
    while True:
        await server.set_health(SCHEDULER_SERVICE, serving=await health.get())


async def _drain(driver: Driver, *, drain_s: float) -> None:
    """Let open requests end."""
    driver.feed(StopAdmission("the scheduler stops"))
    with suppress(TimeoutError):
        async with asyncio.timeout(drain_s):
            await driver.idle()


if __name__ == "__main__":
    sys.exit(main())
