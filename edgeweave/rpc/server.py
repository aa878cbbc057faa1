"""A gRPC server with health and reflection.

Knows how to listen, report health and stop. Does not know any service of edgeweave.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from edgeweave.errors import InvalidSettingsError
from edgeweave.rpc.options import DEFAULT_KEEPALIVE, Keepalive, Option, common_options, lane_options
from edgeweave.rpc.tls import server_credentials
from edgeweave.settings.common import TlsSettings
from edgeweave.settings.values import host_and_port

_FEWEST_MS_BETWEEN_PINGS = 50
_LONGEST_UNWINDING_S = 5.0


class GrpcServer:
    """Serves the services that were added on one port, with the standard health and reflection services.

    Args:
        listen: `host:port`; port 0 takes a free one, see `port`.
        keepalive: how soon a silent client is noticed.
        carries_lanes: whether lanes end here; gives each stream a window that holds a whole chunk.
        tls: files for mutual TLS; None serves in the clear.
    """

    def __init__(
        self,
        listen: str,
        *,
        keepalive: Keepalive = DEFAULT_KEEPALIVE,
        carries_lanes: bool = False,
        tls: TlsSettings | None = None,
    ) -> None:
        self._listen = listen
        self._tls = tls
        self._calls = _OpenCalls()
        self._server = grpc.aio.server(
            interceptors=[self._calls], options=_server_options(keepalive, carries_lanes=carries_lanes)
        )
        self._health = health.aio.HealthServicer()
        self._services: list[str] = []
        self._port: int | None = None

    def add(self, service: str, register: Callable[[grpc.aio.Server], None]) -> None:
        """Add a service by its full name; `register` adds its methods to the server. Only before `start`."""
        register(self._server)
        self._services.append(service)

    @property
    def port(self) -> int:
        """The port that is listened on, once started."""
        if self._port is None:
            raise RuntimeError("the server has no port before start()")
        return self._port

    async def start(self) -> None:
        """Listen and serve; every service is healthy until told otherwise.

        Raises:
            InvalidSettingsError: the port is in use or not ours, or a TLS file cannot be read.
        """
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self._server)
        for service in self._services:
            await self.set_health(service, serving=True)
        self._port = self._bind()
        await self._server.start()

    async def set_health(self, service: str, *, serving: bool) -> None:
        """Say whether `service` serves, to whoever checks or watches; the whole server stays healthy."""
        status = health_pb2.HealthCheckResponse
        await self._health.set(service, status.SERVING if serving else status.NOT_SERVING)

    async def wait(self) -> None:
        """Return when the server has stopped."""
        await self._server.wait_for_termination()

    async def stop(self, *, grace_s: float) -> None:
        """Take no new calls, tell watchers of the health, let open calls end within `grace_s`, then cut them.

        Returns when the servicers have let go of their calls too.
        """
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)
        await self._calls.unwound(timeout_s=_LONGEST_UNWINDING_S)

    def _bind(self) -> int:
        try:
            _check_free(self._listen)
            if self._tls is None:
                return self._server.add_insecure_port(self._listen)
            return self._server.add_secure_port(self._listen, server_credentials(self._tls))
        except (OSError, RuntimeError):
            raise InvalidSettingsError(
                f"cannot listen on {self._listen}: the port is in use or the address is not ours; "
                "choose another with --listen"
            ) from None


class _OpenCalls(grpc.aio.ServerInterceptor):
    """The tasks that run servicers. gRPC's own stop does not wait for those that it cancels."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        """Remember the task that this call runs in; changes nothing about the call."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await continuation(handler_call_details)

    async def unwound(self, *, timeout_s: float) -> None:
        """Return when no servicer runs any more, at the latest after `timeout_s`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)


def _check_free(address: str) -> None:
    """Raise OSError if `address` cannot be listened on: gRPC writes lines of its own to stderr when that fails."""
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.create_server((host, port), family=family).close()


def _server_options(keepalive: Keepalive, *, carries_lanes: bool) -> list[Option]:
    options: list[Option] = [
        *common_options(keepalive),
        # Each side sets its own keepalive; a client that pings more often than this server is not cut off for it.
        ("grpc.http2.min_ping_interval_without_data_ms", _FEWEST_MS_BETWEEN_PINGS),
        # Two servers on one port would share the calls between them instead of one failing to start.
        ("grpc.so_reuseport", 0),
    ]
    return [*options, *lane_options()] if carries_lanes else options
