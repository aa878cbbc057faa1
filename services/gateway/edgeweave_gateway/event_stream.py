"""A streamed answer: server-sent events.

Knows their form, and that an error before the first event still has a status of its own, while a later one is an
event. Does not know what the events say.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from edgeweave.errors import EdgeweaveError
from edgeweave_gateway.front import log_unexpected
from edgeweave_gateway.http_errors import error_body
from edgeweave_gateway.presence import while_connected

_log = structlog.get_logger(__name__)


class EventStream(Response):
    """Sends each of `events` as JSON, then `[DONE]`; stops making them when the client leaves."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[Mapping[str, Any], None]) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]  # nobody knows it yet
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - by ASGI
        """Send the events until they end or the client leaves."""
        try:
            await while_connected(receive, self._send_all(send))
        except ClientDisconnect:
            _log.info("client_left")

    async def _send_all(self, send: Send) -> None:
        async with aclosing(self._events) as events:
            first = await anext(events)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await _send_event(send, _event(first))
            await _send_event(send, await self._send_rest(send))
        await send({"type": "http.response.body", "body": b""})

    async def _send_rest(self, send: Send) -> bytes:
        """Send all further events and return the one that ends the stream."""
        try:
            async for event in self._events:
                await _send_event(send, _event(event))
        except EdgeweaveError as error:
            _log.warning("stream_failed", error=type(error).__name__, reason=str(error))
            return _event(error_body(error), name="error")
        except Exception as error:  # noqa: BLE001 - a stream that has begun still ends with a reason
            log_unexpected(error)
            return _event(error_body(error), name="error")
        return b"data: [DONE]\n\n"


async def _send_event(send: Send, event: bytes) -> None:
    await send({"type": "http.response.body", "body": event, "more_body": True})


def _event(content: Mapping[str, Any], *, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(content, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
