"""The outermost layer of the gateway: every request gets an id, a log line and an answer.

Knows when a request came, how it ended and under which id. Does not look into bodies: no text or token of a prompt
can reach a log from here.
"""

import re
import traceback
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edgeweave.clock import Clock
from edgeweave.errors import EdgeweaveError
from edgeweave.metrics import PATH
from edgeweave_gateway.http_errors import error_response
from edgeweave_gateway.timeline import SPANS_PATH

REQUEST_ID_HEADER = "x-request-id"
# Asked again and again by whoever watches the gateway: a line each would bury the others.
_PROBES = ("/health", "/ready", PATH, SPANS_PATH)
_USABLE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

_log = structlog.get_logger(__name__)


class Front:
    """Wraps an application: ids, log lines, and an answer for what it raised before it answered."""

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id=request_id)
        begin_us = self._clock.now_us()
        try:
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                await self._answered(scope, receive, answer)
        finally:
            log = _log.debug if scope["path"] in _PROBES else _log.info
            log(
                "request_answered",
                request_id=request_id,
                method=scope["method"],
                path=scope["path"],
                status=answer.status,
                duration_ms=(self._clock.now_us() - begin_us) // 1000,
            )

    async def _answered(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        try:
            await self._app(scope, receive, answer.send)
        except (EdgeweaveError, HTTPException) as error:
            if answer.status is None:
                await error_response(error)(scope, receive, answer.send)
        except Exception as error:  # noqa: BLE001 - the last resort: logged by class and place, answered with 500
            log_unexpected(error)
            if answer.status is None:
                await error_response(error)(scope, receive, answer.send)


def log_unexpected(error: Exception) -> None:
    """Log an error that was not foreseen by its class and its place: its text may quote a prompt."""
    _log.error("request_failed", error=type(error).__name__, at=_places(error))


class _Answer:
    """Sends an answer on, with the request id in its headers, and remembers its status."""

    def __init__(self, send: Send, *, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID_HEADER] = self._request_id
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """Return the id that the client gave, if it can stand in a log, or a new one."""
    given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    return given if _USABLE_ID.fullmatch(given) else f"req-{uuid4().hex}"


def _places(error: Exception) -> list[str]:
    """Return where `error` was raised, innermost last: lines of code, no values."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
