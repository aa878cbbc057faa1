"""Counts requests, and serves the page that tells the counts.

Knows routes, statuses and times. Does not look into bodies.
"""

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edgeweave.clock import Clock
from edgeweave.metrics import CONTENT_TYPE, GatewayCollector, HttpMeter, page, registry_of
from edgeweave_gateway.readiness import Readiness


class Metered:
    """Wraps an application and counts what it answers."""

    def __init__(self, app: ASGIApp, *, meter: HttpMeter, clock: Clock) -> None:
        self._app = app
        self._meter = meter
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status: int | None = None

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        begin_us = self._clock.now_us()
        self._meter.begin()
        try:
            await self._app(scope, receive, noted)
        finally:
            self._meter.end(_route(scope), status=status, duration_us=self._clock.now_us() - begin_us)


class MetricsPage:
    """The path `/metrics`."""

    def __init__(self, meter: HttpMeter, readiness: Readiness) -> None:
        self._registry = registry_of("gateway", GatewayCollector(meter, is_ready=lambda: readiness.reason is None))

    async def tell(self) -> Response:
        """Tell all metrics as they are now."""
        return Response(await page(self._registry), headers={"content-type": CONTENT_TYPE})


def _route(scope: Scope) -> str | None:
    """Return the path of the route that was found: as it was written, with names for what differs."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else None
