"""The HTTP server of the gateway.

Knows how to listen, and how to stop without cutting answers short. Does not know what is served.
"""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import uvicorn
from starlette.types import ASGIApp

from edgeweave.errors import InvalidSettingsError

# Open answers may go on for this long after the first signal; a second signal ends them at once.
_DRAIN_S = 5.0
_CLOSE_S = 3
_BACKLOG = 1024

_log = structlog.get_logger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to `host` and `port`; port 0 takes a free one.

    Raises:
        InvalidSettingsError: the port is in use, or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_BACKLOG)  # now, so that of two gateways on one port the second one fails here
    except (OSError, OverflowError) as error:
        bound.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidSettingsError(
            f"cannot serve HTTP on {host}:{port}: {reason}; stop what uses the port, or choose another with --port"
        ) from None
    return bound


def url_of(bound: socket.socket) -> str:
    """Return the URL under which `bound` is reached."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(app: ASGIApp, bound: socket.socket, *, stopping: asyncio.Event) -> None:
    """Serve `app` until SIGTERM or SIGINT; then answers may end, and `stopping` ends those that take long."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=round(_DRAIN_S) + _CLOSE_S,
    )
    server = _Server(config)
    with _signals(server, stopping):
        await server.serve(sockets=[bound])


class _Server(uvicorn.Server):
    """Leaves signals to `serve`: uvicorn would raise them again when it has stopped, as if nothing was orderly."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


@contextmanager
def _signals(server: uvicorn.Server, stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if server.should_exit:
            stopping.set()
            return
        _log.info("stopping", drain_s=_DRAIN_S)
        server.should_exit = True
        loop.call_later(_DRAIN_S, stopping.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
