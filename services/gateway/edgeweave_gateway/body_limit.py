"""The largest body of a request.

Knows the announced length and counts what really comes. Does not know what is in it.
"""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """Refuses requests whose body has more than `max_body_bytes`, before it is in memory.

    Raises HTTPException with status 413: at once where the length is announced, else where the body is read.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the length, then go on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal():
            self._check(int(announced))
        num_bytes = 0

        async def counted() -> Message:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            self._check(num_bytes)
            return message

        await self._app(scope, counted, send)

    def _check(self, num_bytes: int) -> None:
        if num_bytes > self._max_body_bytes:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body has more than {self._max_body_bytes} bytes; send less, or raise --max-body-bytes",
            )
