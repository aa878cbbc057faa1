"""The health check of an image finds the service by the service's own settings, and says why it is not well."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import grpc
import pytest

from edgeweave.rpc import probe
from edgeweave.rpc.server import GrpcServer

EDGE = "edgeweave.v1.EdgeService"


def _register_nothing(_server: grpc.aio.Server) -> None:
    """Health is told about a service by its name alone."""


@pytest.fixture
async def edge() -> AsyncIterator[GrpcServer]:
    server = GrpcServer("127.0.0.1:0")
    server.add(EDGE, _register_nothing)
    await server.start()
    yield server
    await server.stop(grace_s=0)


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def gateway_port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Health)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


async def probed(service: str, **variables: str) -> int:
    """Return the exit code of the probe, which blocks, and so runs beside the loop that serves."""
    return await asyncio.to_thread(probe.main, [service], variables)


async def test_a_service_that_serves_is_well_although_it_listens_on_every_interface(edge: GrpcServer) -> None:
    """What is listened on is not always what can be dialled."""
    listen = f"0.0.0.0:{edge.port}"
    assert await probed("edge", EDGEWEAVE_EDGE__LISTEN=listen, EDGEWEAVE_EDGE__MODEL="/model") == 0


async def test_a_service_that_cannot_serve_now_is_well_all_the_same(edge: GrpcServer) -> None:
    """A lost link is no reason to restart who waits for it."""
    await edge.set_health(EDGE, serving=False)
    listen = f"127.0.0.1:{edge.port}"
    assert await probed("edge", EDGEWEAVE_EDGE__LISTEN=listen, EDGEWEAVE_EDGE__MODEL="/model") == 0


async def test_a_service_that_stops_is_not_well(edge: GrpcServer, capsys: pytest.CaptureFixture[str]) -> None:
    await edge.set_health("", serving=False)
    listen = f"127.0.0.1:{edge.port}"
    assert await probed("edge", EDGEWEAVE_EDGE__LISTEN=listen, EDGEWEAVE_EDGE__MODEL="/model") == 1
    assert f"edge at {listen} is stopping" in capsys.readouterr().err


async def test_a_service_that_is_not_there_is_not_well(edge: GrpcServer, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names service and address."""
    listen = f"127.0.0.1:{edge.port}"
    await edge.stop(grace_s=0)
    assert await probed("scheduler", EDGEWEAVE_SCHEDULER__LISTEN=listen) == 1
    assert f"scheduler at {listen} does not answer" in capsys.readouterr().err


async def test_wrong_settings_are_told_as_the_service_tells_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert await probed("cloud", EDGEWEAVE_CLOUD__LISTEN="nowhere", EDGEWEAVE_CLOUD__MODEL="/model") == 1
    assert "cloud.listen" in capsys.readouterr().err


async def test_the_gateway_is_asked_over_http(gateway_port: int) -> None:
    variables = {"EDGEWEAVE_GATEWAY__HOST": "0.0.0.0", "EDGEWEAVE_GATEWAY__MODEL": "/model"}  # noqa: S104 - as in an image
    assert await probed("gateway", EDGEWEAVE_GATEWAY__PORT=str(gateway_port), **variables) == 0


async def test_a_gateway_that_is_not_there_is_not_well(gateway_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    variables = {"EDGEWEAVE_GATEWAY__HOST": "127.0.0.2", "EDGEWEAVE_GATEWAY__MODEL": "/model"}
    assert await probed("gateway", EDGEWEAVE_GATEWAY__PORT=str(gateway_port), **variables) == 1
    assert "does not serve" in capsys.readouterr().err
