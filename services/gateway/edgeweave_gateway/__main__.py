"""The composition root of the gateway: settings become objects, objects are served.

Run by `python -m edgeweave_gateway` or `edgeweave serve gateway`.
"""

import asyncio
import os
import secrets
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial

import structlog
import uvloop

from edgeweave import Client
from edgeweave.client.text_client import TextClient
from edgeweave.clock import MonotonicClock
from edgeweave.errors import EdgeweaveError
from edgeweave.settings import GatewaySettings, load
from edgeweave.telemetry import configure_logging, span_processor, tracer_provider
from edgeweave.text import TextModel
from edgeweave_gateway.app import create_app
from edgeweave_gateway.choices import ChoiceMaker
from edgeweave_gateway.readiness import Readiness
from edgeweave_gateway.routes import Routes
from edgeweave_gateway.server import listen, serve, url_of
from edgeweave_gateway.timeline import TimelinePaths

_log = structlog.get_logger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code: 0 after an orderly stop, 2 for what the user has to change."""
    try:
        settings = load(GatewaySettings, sys.argv[1:] if argv is None else argv, os.environ)
        configure_logging(settings.log_level, fmt=settings.log_format, service="gateway")
        text_model = TextModel.load(settings.model)
        bound = listen(settings.host, settings.port)
    except EdgeweaveError as error:
        print(f"edgeweave gateway: {error}", file=sys.stderr)  # noqa: T201 - logs may not be set up yet
        return 2
    with bound:
        uvloop.run(_serve(settings, text_model, bound))
    return 0


async def _serve(settings: GatewaySettings, text_model: TextModel, bound: socket.socket) -> None:
    provider = tracer_provider("gateway", processor=span_processor(settings.otlp_endpoint))
    stopping = asyncio.Event()
    async with Client(settings.scheduler, tls=settings.tls) as client, Readiness(client) as readiness:
        routes = Routes(
            model_name=settings.model_name or settings.model.resolve().name,
            choice_maker=ChoiceMaker(text_model, random_seed=partial(secrets.randbits, 64)),
            client=TextClient(client, text_model),
            readiness=readiness,
            tracer=provider.get_tracer("edgeweave.gateway"),
            now_s=time.time,
            stopping=stopping,
        )
        app = create_app(
            routes,
            timeline=TimelinePaths(client),
            api_keys=settings.api_keys,
            max_body_bytes=settings.max_body_bytes,
            clock=MonotonicClock(),
            metrics_need_key=settings.metrics_need_key,
        )
        _log.info("serving", url=url_of(bound), model=routes.model_name, scheduler=settings.scheduler)
        try:
            await serve(app, bound, stopping=stopping)
        finally:
            provider.shutdown()
    _log.info("stopped")


if __name__ == "__main__":
    sys.exit(main())
