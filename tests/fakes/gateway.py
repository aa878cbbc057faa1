"""A gateway with all its parts, in front of a scheduler that answers from a script; and real HTTP for it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.types import ASGIApp

from edgeweave import Client
from edgeweave.client.text_client import TextClient
from edgeweave.clock import ManualClock
from edgeweave.text import TextModel
from edgeweave_gateway.app import create_app
from edgeweave_gateway.choices import ChoiceMaker
from edgeweave_gateway.readiness import Readiness
from edgeweave_gateway.routes import Routes
from edgeweave_gateway.server import listen
from edgeweave_gateway.timeline import TimelinePaths
from fakes.scheduler import FakeScheduler
from fakes.scheduler import serve as serve_scheduler

MODEL = "tiny"
NOW_S = 1_900_000_000
DRAWN_SEED = 2**64 - 5


@dataclass(frozen=True)
class FakeGateway:
    """What a test needs to know of a gateway that is served."""

    app: ASGIApp
    scheduler: FakeScheduler
    model: TextModel
    readiness: Readiness
    spans: InMemorySpanExporter
    stopping: asyncio.Event


@asynccontextmanager
async def compose_gateway(
    folder: Path,
    *,
    scheduler: FakeScheduler,
    api_keys: Sequence[str] = (),
    max_body_bytes: int = 1 << 20,
    behind: str | None = None,
    metrics_need_key: bool = True,
) -> AsyncIterator[FakeGateway]:
    """Put a gateway together for the model in `folder`, with `scheduler` behind it, or whoever is at `behind`."""
    model = TextModel.load(folder)
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    stopping = asyncio.Event()
    async with (
        serve_scheduler(scheduler),
        Client(behind or scheduler.target) as client,
        Readiness(client, interval_s=0.01, retry_s=0.01) as readiness,
    ):
        routes = Routes(
            model_name=MODEL,
            choice_maker=ChoiceMaker(model, random_seed=lambda: DRAWN_SEED),
            client=TextClient(client, model),
            readiness=readiness,
            tracer=provider.get_tracer("test"),
            now_s=lambda: NOW_S,
            stopping=stopping,
        )
        app = create_app(
            routes,
            timeline=TimelinePaths(client),
            api_keys=api_keys,
            max_body_bytes=max_body_bytes,
            clock=ManualClock(),
            metrics_need_key=metrics_need_key,
        )
        yield FakeGateway(app, scheduler, model, readiness, spans, stopping)


@asynccontextmanager
async def serve_http(gateway: FakeGateway) -> AsyncIterator[str]:
    """Serve `gateway` on a free port and yield its URL."""
    bound = listen("127.0.0.1", 0)
    config = uvicorn.Config(gateway.app, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve([bound]))  # noqa: SLF001 - without its signal handlers
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        gateway.stopping.set()
        server.should_exit = True
        await serving
