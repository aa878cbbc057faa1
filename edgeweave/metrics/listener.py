"""Serves the page `/metrics` of a service that has no HTTP of its own.

Knows as much of HTTP as a scrape takes: one request on a connection, answered and closed. Runs on the event loop of
the service, where everything that the page tells changes, so that nothing changes while a metric is written.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from edgeweave.errors import InvalidSettingsError
from edgeweave.metrics.page import CONTENT_TYPE, PATH, page, registry_of
from edgeweave.settings.values import host_and_port

_PATIENCE_S = 5.0
_MOST_HEAD_BYTES = 16_384
_log = structlog.get_logger(__name__)


@asynccontextmanager
async def metrics_served(listen: str | None, service: str, *collectors: Collector) -> AsyncIterator[int | None]:
    """Serve what `collectors` tell at `listen` while the block runs; yields the port, `None` where none is wanted.

    Raises:
        InvalidSettingsError: the port is in use, or the address is not ours.
    """
    if listen is None:
        yield None
        return
    listener = MetricsListener(registry_of(service, *collectors))
    port = await listener.start(listen)
    _log.info("serving_metrics", port=port, path=PATH)
    try:
        yield port
    finally:
        await listener.stop()


class MetricsListener:
    """A small HTTP server for one page."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def start(self, listen: str) -> int:
        """Listen at HOST:PORT and return the port; port 0 takes a free one.

        Raises:
            InvalidSettingsError: the port is in use, or the address is not ours.
        """
        bound = _bound(listen)
        self._server = await asyncio.start_server(self._accept, sock=bound, limit=_MOST_HEAD_BYTES)
        port: int = bound.getsockname()[1]
        return port

    async def stop(self) -> None:
        """Take no more connections and end those that are open."""
        if self._server is None:
            return
        self._server.close()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering = asyncio.create_task(self._answer(reader, writer))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request. One that does not come whole, in time and in a sensible size gets no answer."""
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_PATIENCE_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(await self._answer_to(head.decode("latin-1")))
                    await writer.drain()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer_to(self, head: str) -> bytes:
        method, _, rest = head.partition("\r\n")[0].partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1."):
            return _answer(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1\n")
        if target.partition("?")[0] != PATH:
            return _answer(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}\n")
        if method not in {"GET", "HEAD"}:
            return _answer(HTTPStatus.METHOD_NOT_ALLOWED, "metrics can be read only\n", Allow="GET, HEAD")
        try:
            told = await page(self._registry)
        except Exception as error:  # noqa: BLE001 - the border of a scrape: whatever it is, the service goes on
            _log.error("scrape_failed", exc_info=error)
            return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the metrics cannot be told, see the log of the service\n")
        return _answer(HTTPStatus.OK, told, content_type=CONTENT_TYPE, is_head=method == "HEAD")


def _bound(listen: str) -> socket.socket:
    host, port = host_and_port(listen)
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen()  # now, so that of two services on one port the second one fails here
    except OSError as error:
        bound.close()
        raise InvalidSettingsError(
            f"cannot serve metrics on {listen}: {error.strerror}; stop what uses the port, or choose another with "
            "--metrics-listen"
        ) from None
    return bound


def _answer(
    status: HTTPStatus,
    body: str | bytes,
    *,
    content_type: str = "text/plain; charset=utf-8",
    is_head: bool = False,
    **headers: str,
) -> bytes:
    payload = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": content_type, "Content-Length": len(payload), "Connection": "close", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n".encode() + (b"" if is_head else payload)
