"""Processes that stand in for the services: they listen, say that they are ready, and end.

A scheduler is ready once edge and cloud answer, the cloud by way of the link; a gateway once the scheduler does. The
variables STAND_IN_BROKEN, STAND_IN_REFUSING, STAND_IN_LATE and STAND_IN_DEAF name a service that fails, finds the user
mistaken, is never ready, or hears no SIGTERM.
"""

import asyncio
import os
import signal
import sys

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from edgeweave.settings import CloudSettings, EdgeSettings, GatewaySettings, SchedulerSettings, load

Settings = CloudSettings | EdgeSettings | SchedulerSettings | GatewaySettings
SETTINGS: dict[str, type[Settings]] = {
    "cloud": CloudSettings,
    "edge": EdgeSettings,
    "scheduler": SchedulerSettings,
    "gateway": GatewaySettings,
}


def run(name: str) -> None:
    """Stand in for the service `name` until SIGTERM."""
    settings = load(SETTINGS[name], sys.argv[1:], os.environ)
    _say(f"{name} starts")
    if os.environ.get("STAND_IN_BROKEN") == name:
        sys.exit(f"{name}: the flux is decoupled")
    if os.environ.get("STAND_IN_REFUSING") == name:
        _say(f"{name}: a flux of 2 is not legal; give 1")
        sys.exit(2)
    asyncio.run(_serve(name, settings))


async def _serve(name: str, settings: Settings) -> None:
    stopping = asyncio.Event()
    hear = stopping.set if os.environ.get("STAND_IN_DEAF") != name else lambda: None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, hear)
    if os.environ.get("STAND_IN_LATE") == name:
        _say(f"{name} waits for a sign")
        await stopping.wait()
    elif isinstance(settings, GatewaySettings):
        await _until_healthy("scheduler", settings.scheduler)
        async with await asyncio.start_server(_answer, settings.host, settings.port):
            await stopping.wait()
    else:
        if isinstance(settings, SchedulerSettings):
            await _until_healthy("edge", settings.edge)
            if settings.cloud is not None:
                await _until_healthy("cloud", settings.cloud)
        server = grpc.aio.server()
        servicer = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
        await servicer.set(f"edgeweave.v1.{name.title()}Service", health_pb2.HealthCheckResponse.SERVING)
        server.add_insecure_port(settings.listen)
        await server.start()
        await stopping.wait()
        await server.stop(None)
    _say(f"{name} ends")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _until_healthy(name: str, address: str) -> None:
    request = health_pb2.HealthCheckRequest(service=f"edgeweave.v1.{name.title()}Service")
    options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100)]
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        await health_pb2_grpc.HealthStub(channel).Check(request, wait_for_ready=True)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    writer.close()
    await writer.wait_closed()
