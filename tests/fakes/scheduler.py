"""A scheduler that answers from a script: a real grpc.aio server on a free port, and no mesh behind it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from edgeweave.errors import EdgeweaveError
from edgeweave.rpc.server import GrpcServer
from edgeweave.rpc.status import abort, telling_errors
from edgeweave.settings import TlsSettings
from edgeweave.tracing.store import SpanStore
from edgeweave.v1 import common_pb2, edge_pb2, scheduler_pb2, scheduler_pb2_grpc
from edgeweave_scheduler.kept_spans import kept_spans

Request = scheduler_pb2.GenerateRequest
READY = scheduler_pb2.WatchMeshResponse(
    state=scheduler_pb2.SESSION_STATE_READY,
    session=7,
    plan=common_pb2.Plan(plan=1, kind=common_pb2.PLAN_KIND_ONE_P_ONE_D, max_prefills=1, max_steps=1),
    edge=scheduler_pb2.EngineState(busy_us=5, num_blocks=10, num_free_blocks=9),
    hidden_share=0.5,
)


@dataclass
class FakeScheduler:
    """What the scheduler answers, and what it was asked.

    `script` gives the output of a request; a stop token in it, or `max_tokens`, ends the output as the edge would.
    After `fail_at` tokens `error` ends a stream, if its request is one that `fails`; after `hold_at` tokens a stream
    waits for `release`. A peer that breaks the contract is made by `first_index_shift` and `omit_finish`. `watched` is
    set once a watcher has a state.
    """

    script: Callable[[Request], tuple[int, ...]]
    tokens_per_message: int = 1
    error: EdgeweaveError | None = None
    fail_at: int = 0
    fails: Callable[[Request], bool] = lambda _: True
    hold_at: int | None = None
    first_index_shift: int = 0
    omit_finish: bool = False
    release: asyncio.Event = field(default_factory=asyncio.Event)
    mesh: scheduler_pb2.WatchMeshResponse = field(default_factory=lambda: READY)
    mesh_changed: asyncio.Event = field(default_factory=asyncio.Event)
    watched: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[Request] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    plans: list[scheduler_pb2.SetPlanRequest] = field(default_factory=list)
    num_open: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    store: SpanStore | None = None
    reads: list[scheduler_pb2.ReadSpansRequest] = field(default_factory=list)
    target: str = ""

    def show(self, mesh: scheduler_pb2.WatchMeshResponse) -> None:
        """Send `mesh` to every watcher now."""
        self.mesh = mesh
        self.mesh_changed.set()
        self.mesh_changed = asyncio.Event()


@asynccontextmanager
async def serve(
    fake: FakeScheduler, *, listen: str = "127.0.0.1:0", tls: TlsSettings | None = None
) -> AsyncIterator[FakeScheduler]:
    """Serve `fake`, on a free port unless one is given."""
    server = GrpcServer(listen, tls=tls)
    register = partial(scheduler_pb2_grpc.add_SchedulerServiceServicer_to_server, _Servicer(fake))
    server.add("edgeweave.v1.SchedulerService", register)
    await server.start()
    fake.target = f"127.0.0.1:{server.port}"
    try:
        yield fake
    finally:
        await server.stop(grace_s=0)


class _Servicer(scheduler_pb2_grpc.SchedulerServiceServicer):
    def __init__(self, fake: FakeScheduler) -> None:
        self._fake = fake

    async def ReadSpans(  # noqa: N802 - named by the contract
        self, request: scheduler_pb2.ReadSpansRequest, context: Any
    ) -> AsyncIterator[scheduler_pb2.ReadSpansResponse]:
        self._fake.reads.append(request)
        async with telling_errors(context):
            for response in kept_spans(request, self._fake.store, now_us=time.time_ns() // 1000):
                yield response

    async def Generate(  # noqa: N802 - named by the contract
        self, request: Request, context: Any
    ) -> AsyncIterator[scheduler_pb2.GenerateResponse]:
        fake = self._fake
        fake.requests.append(request)
        fake.metadata.append(dict(context.invocation_metadata() or ()))
        fake.num_open += 1
        try:
            async with telling_errors(context):
                async for response in self._responses(request):
                    yield response
        except asyncio.CancelledError:
            fake.aborted.set()
            raise
        finally:
            fake.num_open -= 1
            if not fake.num_open:
                fake.idle.set()

    async def SetPlan(  # noqa: N802 - the same
        self, request: scheduler_pb2.SetPlanRequest, context: Any
    ) -> scheduler_pb2.SetPlanResponse:
        self._fake.plans.append(request)
        if self._fake.error:
            await abort(context, self._fake.error)
        return scheduler_pb2.SetPlanResponse(plan=common_pb2.Plan(plan=2, kind=request.kind))

    async def WatchMesh(  # noqa: N802 - the same
        self,
        request: scheduler_pb2.WatchMeshRequest,  # noqa: ARG002 - the fake sends what changes
        context: Any,  # noqa: ARG002 - the same
    ) -> AsyncIterator[scheduler_pb2.WatchMeshResponse]:
        while True:
            changed = self._fake.mesh_changed
            yield self._fake.mesh
            self._fake.watched.set()
            await changed.wait()

    async def _responses(self, request: Request) -> AsyncIterator[scheduler_pb2.GenerateResponse]:
        fake = self._fake
        first = len(request.output_token_ids)
        output = _ended(request, fake.script(request))
        size = fake.tokens_per_message
        for start in range(first, max(len(output), first + 1), size):
            if fake.error and start >= fake.fail_at and fake.fails(request):
                raise fake.error
            if start == fake.hold_at:
                fake.holding.set()
                await fake.release.wait()
            stop = min(start + size, len(output))
            response = scheduler_pb2.GenerateResponse(
                first_index=start + fake.first_index_shift, token_ids=output[start:stop]
            )
            if stop == len(output) and not fake.omit_finish:
                _end(response, request, output)
            yield response


def _ended(request: Request, script: tuple[int, ...]) -> tuple[int, ...]:
    """Return the output up to the first stop token or the limit."""
    stops = [index for index, token_id in enumerate(script) if token_id in request.stop_token_ids]
    return script[: min([request.max_tokens, *(index + 1 for index in stops)])]


def _end(response: scheduler_pb2.GenerateResponse, request: Request, output: tuple[int, ...]) -> None:
    """Add what the last response has."""
    stopped = bool(output) and output[-1] in request.stop_token_ids
    response.finish = edge_pb2.FINISH_REASON_STOP if stopped else edge_pb2.FINISH_REASON_LENGTH
    response.usage.num_prompt_tokens = len(request.prompt_token_ids)
    response.usage.num_output_tokens = len(output)
