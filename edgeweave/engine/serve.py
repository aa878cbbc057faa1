"""Runs an engine as a process: from a loaded model to an orderly stop.

Knows signals, the order of stopping and the compute thread's life. Does not know edge from cloud.
"""

import asyncio
import signal
from typing import Protocol

import structlog

from edgeweave.engine.worker import Worker
from edgeweave.errors import EdgeweaveError, UnavailableError
from edgeweave.rpc.server import GrpcServer

_log = structlog.get_logger(__name__)


class EngineServicer(Protocol):
    """What both engines' servicers offer to whoever runs them."""

    async def idle(self) -> None:
        """Return when no session is served."""
        ...

    def end_all(self, reason: EdgeweaveError) -> None:
        """End the session that is served, if any."""
        ...


async def serve_engine(
    server: GrpcServer, *, service: str, servicer: EngineServicer, worker: Worker, drain_s: float
) -> None:
    """Serve until SIGTERM or SIGINT; then let the session end within `drain_s`, and stop.

    Health turns to not serving first, which tells the scheduler to bring open requests to their end and to leave.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    worker.start()
    try:
        await server.start()
        _log.info("serving", service=service, port=server.port)
        await stopping.wait()
        await _drain(server, service=service, servicer=servicer, drain_s=drain_s)
        await server.stop(grace_s=1.0)
    finally:
        worker.stop()
    _log.info("stopped")


async def _drain(server: GrpcServer, *, service: str, servicer: EngineServicer, drain_s: float) -> None:
    _log.info("draining", drain_s=drain_s)
    await server.set_health(service, serving=False)
    try:
        async with asyncio.timeout(drain_s):
            await servicer.idle()
    except TimeoutError:
        servicer.end_all(UnavailableError("the engine stops"))
