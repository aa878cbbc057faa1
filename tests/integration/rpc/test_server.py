"""A server listens where it was told, reports health and reflection, and tells what is wrong in one line."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from edgeweave.errors import InvalidSettingsError, UnavailableError
from edgeweave.rpc.channels import connect, dial
from edgeweave.rpc.server import GrpcServer

SERVICE = "edgeweave.v1.EdgeService"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def _register_nothing(_server: grpc.aio.Server) -> None:
    """Health and reflection are told about a service by its name alone."""


@pytest.fixture
async def server() -> AsyncIterator[GrpcServer]:
    server = GrpcServer("127.0.0.1:0")
    server.add(SERVICE, _register_nothing)
    await server.start()
    yield server
    await server.stop(grace_s=0)


@pytest.fixture
async def channel(server: GrpcServer) -> AsyncIterator[grpc.aio.Channel]:
    async with dial(f"127.0.0.1:{server.port}") as channel:
        yield channel


async def test_health_tells_each_service_and_the_whole(server: GrpcServer, channel: grpc.aio.Channel) -> None:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    await server.set_health(SERVICE, serving=False)
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))).status == NOT_SERVING
    assert (await stub.Check(health_pb2.HealthCheckRequest())).status == SERVING
    await server.set_health(SERVICE, serving=True)
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))).status == SERVING


async def test_a_watcher_of_health_hears_of_the_stop(server: GrpcServer, channel: grpc.aio.Channel) -> None:
    watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE))
    assert (await watch.read()).status == SERVING
    await server.stop(grace_s=0.2)
    assert (await watch.read()).status == NOT_SERVING


async def test_reflection_lists_the_services(channel: grpc.aio.Channel) -> None:
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    answer = await call.read()
    names = {service.name for service in answer.list_services_response.service}
    assert names == {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}
    call.cancel()


async def test_a_port_in_use_is_one_line_that_says_what_to_do(server: GrpcServer) -> None:
    second = GrpcServer(f"127.0.0.1:{server.port}")
    with pytest.raises(InvalidSettingsError, match=rf"cannot listen on 127.0.0.1:{server.port}: .* --listen"):
        await second.start()


async def test_a_server_has_no_port_before_it_listens() -> None:
    with pytest.raises(RuntimeError, match=r"before start\(\)"):
        _ = GrpcServer("127.0.0.1:0").port


async def test_a_target_that_does_not_answer_is_named(server: GrpcServer) -> None:
    target = f"127.0.0.1:{server.port}"
    await server.stop(grace_s=0)
    async with dial(target) as channel:
        with pytest.raises(UnavailableError, match=f"nothing answers at {target} within 0.2 s"):
            await connect(channel, target=target, timeout_s=0.2)
