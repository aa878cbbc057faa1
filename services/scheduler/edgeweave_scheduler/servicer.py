"""The scheduler's gRPC face: requests in, tokens out, plans, and the state of the mesh.

Knows messages and streams. A thin layer over the driver.
"""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator
from contextlib import nullcontext

import structlog
from opentelemetry.propagate import extract
from opentelemetry.trace import Tracer

from edgeweave.errors import EdgeweaveError, InvalidRequestError, ProtocolError
from edgeweave.interleave.nouns import FinishReason, Fuse, PlanKind
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_events import Emit
from edgeweave.rpc.status import Context, telling_errors, when_over
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.v1 import edge_pb2
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave.v1.scheduler_pb2_grpc import SchedulerServiceServicer
from edgeweave.wire.fields import enum_field, optional_enum_field
from edgeweave.wire.messages import plan_message
from edgeweave_scheduler.admission import request_of
from edgeweave_scheduler.driver import Answer, Driver
from edgeweave_scheduler.keeper import SessionKeeper
from edgeweave_scheduler.kept_spans import kept_spans
from edgeweave_scheduler.mesh_message import mesh_message
from edgeweave_scheduler.tracing import Tracing

SHORTEST_INTERVAL_MS = 10
_log = structlog.get_logger(__name__)


class SchedulerServicer(SchedulerServiceServicer):
    """Serves clients."""

    def __init__(
        self, driver: Driver, *, keeper: SessionKeeper, tracer: Tracer, tracing: Tracing | None = None
    ) -> None:
        self._driver = driver
        self._keeper = keeper
        self._tracer = tracer
        self._tracing = tracing

    async def Generate(  # noqa: N802 - named by the contract
        self, message: pb.GenerateRequest, context: Context
    ) -> AsyncIterator[pb.GenerateResponse]:
        """Generate tokens for one prompt, as they come.

        Next: edgeweave.interleave.scheduler_core.SchedulerCore.poll
        """
        async with telling_errors(context):
            request = request_of(
                message,
                now_us=self._driver.clock.now_us(),
                new_id=lambda: uuid.uuid4().hex,
                new_seed=lambda: secrets.randbits(63),
            )
            parent = extract(
                {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
            )
            with self._tracer.start_as_current_span(SpanName.GENERATE, context=parent) as span:
                span.set_attribute(Attribute.REQUEST_ID, request.request_id)
                span.set_attribute(Attribute.NUM_PROMPT_TOKENS, len(request.prompt))
                num_known = len(request.output)
                with self._tracing.watching(request, span) if self._tracing is not None else nullcontext():
                    async for response in self._answer(request, context):
                        if response.first_index == num_known:
                            waited_us = self._driver.clock.now_us() - request.arrived_us
                            span.set_attribute(Attribute.TIME_TO_FIRST_TOKEN_US, waited_us)
                        if response.finish:
                            span.set_attribute(Attribute.FINISH_REASON, FinishReason(response.finish).name.lower())
                        yield response
                span.set_attribute(Attribute.NUM_OUTPUT_TOKENS, len(request.output))

    async def SetPlan(self, message: pb.SetPlanRequest, context: Context) -> pb.SetPlanResponse:  # noqa: N802 - named by the contract
        """Replace the plan in force."""
        async with telling_errors(context):
            self._driver.feed(_plan_request_of(message))
            _log.info("plan_set", plan=self._driver.core.plan)
            return pb.SetPlanResponse(plan=plan_message(self._driver.core.plan))

    async def WatchMesh(  # noqa: N802 - named by the contract
        self, message: pb.WatchMeshRequest, context: Context
    ) -> AsyncIterator[pb.WatchMeshResponse]:
        """Stream the state of the mesh until the caller leaves."""
        async with telling_errors(context):
            interval_s = max(message.interval_ms, SHORTEST_INTERVAL_MS) / 1000
            while True:
                yield mesh_message(self._driver.core, self._keeper, now_us=self._driver.clock.now_us())
                await asyncio.sleep(interval_s)

    async def ReadSpans(  # noqa: N802 - named by the contract
        self, message: pb.ReadSpansRequest, context: Context
    ) -> AsyncIterator[pb.ReadSpansResponse]:
        """Stream the spans that are kept."""
        async with telling_errors(context):
            store, now_us = (self._tracing.store, self._tracing.now_us) if self._tracing is not None else (None, 0)
            for response in kept_spans(message, store, now_us=now_us):
                yield response

    async def _answer(self, request: Request, context: Context) -> AsyncIterator[pb.GenerateResponse]:
        """Yield answers until the last."""
        answers = self._driver.open(request)
        when_over(context, lambda: self._driver.close(request.request_id, answers))
        is_last = False
        while not is_last:
            emits = _waiting(await answers.get(), answers)
            is_last = emits[-1].finish is not None
            yield _response(request, emits)


def _waiting(first: Answer, answers: "asyncio.Queue[Answer]") -> list[Emit]:
    """Return `first` and what waits behind it; an error after tokens is left for the next call."""
    if isinstance(first, EdgeweaveError):
        raise first
    emits = [first]
    while emits[-1].finish is None and not answers.empty():
        answer = answers.get_nowait()
        if isinstance(answer, EdgeweaveError):
            answers.put_nowait(answer)  # nothing comes after an error, so it is the last again
            break
        emits.append(answer)
    return emits


def _response(request: Request, emits: list[Emit]) -> pb.GenerateResponse:
    last = emits[-1]
    response = pb.GenerateResponse(first_index=emits[0].index, token_ids=[emit.token_id for emit in emits])
    if last.finish is not None:
        response.finish = edge_pb2.FinishReason.ValueType(last.finish)
        response.usage.num_prompt_tokens = len(request.prompt)
        response.usage.num_output_tokens = last.index + 1
    return response


def _plan_request_of(message: pb.SetPlanRequest) -> PlanRequest:
    try:
        kind = enum_field(message, "kind", kind=PlanKind)
        fuse = optional_enum_field(message, "fuse", kind=Fuse) or Fuse.AUTO
    except ProtocolError as error:
        raise InvalidRequestError(f"the plan cannot be read: {error}") from None
    return PlanRequest(
        kind=kind,
        max_prefills=message.max_prefills or None,
        max_steps=message.max_steps or None,
        num_segments=message.num_segments or None,
        fuse=fuse,
    )
