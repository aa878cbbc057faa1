"""Whoever starts a mesh, or measures one that lost its session, waits until a service says that it serves."""

import asyncio

import grpc

from edgeweave.cli.readiness import until_serving
from edgeweave.rpc.server import GrpcServer

SCHEDULER = "edgeweave.v1.SchedulerService"


def _register_nothing(_server: grpc.aio.Server) -> None:
    """Health is told about a service by its name alone."""


async def test_the_wait_ends_with_the_session_that_follows_a_lost_one() -> None:
    """The scheduler says that it does not serve while there is none."""
    server = GrpcServer("127.0.0.1:0")
    server.add(SCHEDULER, _register_nothing)
    await server.start()
    await server.set_health(SCHEDULER, serving=False)
    waiting = asyncio.create_task(until_serving(f"127.0.0.1:{server.port}", service="scheduler", tls=None))
    done, _ = await asyncio.wait([waiting], timeout=0.3)
    assert not done
    await server.set_health(SCHEDULER, serving=True)
    await asyncio.wait_for(waiting, 5)
    await server.stop(grace_s=0)
