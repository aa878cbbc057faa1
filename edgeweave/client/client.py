"""The client of a scheduler.

Knows the calls of `SchedulerService`, and turns what goes wrong into `edgeweave.errors`. Does not know text.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import grpc.aio

from edgeweave.client.calls import call_error, refused_values, responses, trace_metadata
from edgeweave.client.deltas import TokenDelta, token_delta_of
from edgeweave.client.mesh_state import MeshState, mesh_state_of
from edgeweave.client.spans import SpanBatch, span_batch_of
from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import GREEDY, Fuse, Plan, PlanKind, Sampling
from edgeweave.rpc.channels import dial
from edgeweave.settings.common import TlsSettings
from edgeweave.tracing.span import TRACE_BYTES, Span
from edgeweave.v1 import common_pb2 as common_pb
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave.v1.scheduler_pb2_grpc import SchedulerServiceStub
from edgeweave.wire.edge import sampling_message
from edgeweave.wire.tasks import plan_of

if TYPE_CHECKING:
    from edgeweave.client.text_client import TextClient


class Client:
    """Asks the scheduler at `target` (host:port). Use it as an asynchronous context manager.

        async with Client("127.0.0.1:50050") as client:
            async for delta in client.generate([1, 2, 3], max_tokens=16):
                print(delta.token_ids)

    Every call raises `edgeweave.errors.EdgeweaveError`: `UnavailableError` where nobody answers. A stream that is
    left early is closed at once by `contextlib.aclosing`; that aborts its request.
    """

    def __init__(self, target: str, *, tls: TlsSettings | None = None) -> None:
        self._target = target
        self._tls = tls
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        self._channel = dial(self._target, tls=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def generate(
        self,
        prompt_token_ids: Sequence[int],
        *,
        max_tokens: int,
        sampling: Sampling = GREEDY,
        stop_token_ids: Collection[int] = (),
        output_token_ids: Sequence[int] = (),
        request_id: str | None = None,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[TokenDelta, None]:
        """Generate tokens for one prompt; closing the generator aborts the request.

        Args:
            prompt_token_ids: the prompt, at least one token.
            max_tokens: most output tokens, `output_token_ids` included.
            sampling: how tokens are drawn.
            stop_token_ids: tokens that end the output.
            output_token_ids: what was generated before; the output goes on after it.
            request_id: name for logs and spans of the site; None: the scheduler gives one.
            deadline_s: longest time for the whole request; None: no limit.

        The trace context of the caller goes along. The last delta has finish and usage.

        Raises:
            EdgeweaveError: while iterating, and at once for values that no message can hold.

        Next: edgeweave_scheduler.servicer.SchedulerServicer.Generate
        """
        with refused_values():
            request = pb.GenerateRequest(
                request_id=request_id or "",
                prompt_token_ids=prompt_token_ids,
                output_token_ids=output_token_ids,
                sampling=sampling_message(sampling),
                max_tokens=max_tokens,
                stop_token_ids=sorted(stop_token_ids),
                deadline_ms=0 if deadline_s is None else max(1, round(deadline_s * 1000)),
            )
        return self._deltas(request, metadata=trace_metadata(), deadline_s=deadline_s)

    async def set_plan(
        self,
        kind: PlanKind,
        *,
        max_prefills: int | None = None,
        max_steps: int | None = None,
        num_segments: int | None = None,
        fuse: Fuse = Fuse.AUTO,
    ) -> Plan:
        """Replace the plan in force, without a drain, and return the new one; None keeps what `kind` implies."""
        with refused_values():
            request = pb.SetPlanRequest(
                kind=common_pb.PlanKind.ValueType(kind),
                max_prefills=max_prefills or 0,
                max_steps=max_steps or 0,
                num_segments=num_segments or 0,
                fuse=pb.Fuse.ValueType(fuse),
            )
        try:
            response = await self._stub().SetPlan(request)
        except grpc.aio.AioRpcError as failure:
            raise call_error(failure, target=self._target) from failure
        return plan_of(response.plan)

    async def watch_mesh(self, *, interval_s: float = 1.0) -> AsyncGenerator[MeshState, None]:
        """Yield the state of the mesh every `interval_s` seconds, at least 0.01, until closed."""
        call = self._stub().WatchMesh(pb.WatchMeshRequest(interval_ms=max(10, round(interval_s * 1000))))
        async with aclosing(responses(call, target=self._target)) as stream:
            async for response in stream:
                yield mesh_state_of(response)

    async def read_spans(self, *, last_s: float | None = None) -> AsyncGenerator[Span, None]:
        """Yield the spans that the scheduler keeps, of the last `last_s` seconds or all, oldest first.

        There are none where its `keep_spans` is 0.
        """
        async with aclosing(self._read(pb.ReadSpansRequest(last_ms=_milliseconds(last_s)))) as batches:
            async for batch in batches:
                for span in batch.spans:
                    yield span

    async def read_timelines(self, *, after: int = 0, last_s: float | None = None) -> AsyncGenerator[SpanBatch, None]:
        """Yield the spans of the engines' timelines that the scheduler got since a `SpanBatch.next`, or all for 0.

        The spans of requests themselves are among them, and what is below these is not. Of the last `last_s` seconds
        alone, if it is given.
        """
        request = pb.ReadSpansRequest(timelines_after=after, last_ms=_milliseconds(last_s))
        async with aclosing(self._read(request)) as batches:
            async for batch in batches:
                yield batch

    async def read_trace(self, trace: int) -> AsyncGenerator[SpanBatch, None]:
        """Yield the spans of one trace that the scheduler keeps: a request and all that is below it."""
        request = pb.ReadSpansRequest(trace=trace.to_bytes(TRACE_BYTES, "big"))
        async with aclosing(self._read(request)) as batches:
            async for batch in batches:
                yield batch

    async def _read(self, request: pb.ReadSpansRequest) -> AsyncGenerator[SpanBatch, None]:
        async with aclosing(responses(self._stub().ReadSpans(request), target=self._target)) as stream:
            async for response in stream:
                yield span_batch_of(response)

    def with_text(self, model_folder: Path | str) -> "TextClient":
        """Return a client for text, with the tokenizer and chat template of `model_folder`.

        Needs the extra `edgeweave[text]`.

        Raises:
            ModelError: the folder cannot be used.
        """
        from edgeweave.client.text_client import TextClient  # noqa: PLC0415 - ids need no tokenizer
        from edgeweave.text import TextModel  # noqa: PLC0415 - the same

        return TextClient(self, TextModel.load(Path(model_folder)))

    async def _deltas(
        self, request: pb.GenerateRequest, *, metadata: tuple[tuple[str, str], ...], deadline_s: float | None
    ) -> AsyncGenerator[TokenDelta, None]:
        call = self._stub().Generate(request, metadata=metadata, timeout=deadline_s)
        next_index = len(request.output_token_ids)
        finished = False
        async with aclosing(responses(call, target=self._target)) as stream:
            async for response in stream:
                delta = token_delta_of(response)
                if delta.first_index != next_index:
                    raise ProtocolError(f"the scheduler sent output {delta.first_index} where {next_index} is next")
                next_index += len(delta.token_ids)
                finished = delta.finish is not None
                yield delta
        if not finished:
            raise ProtocolError(f"the scheduler ended a stream after {next_index} tokens without a finish reason")

    def _stub(self) -> "SchedulerServiceStub":
        if self._channel is None:
            raise RuntimeError("the client is not open; use it in `async with`")
        return SchedulerServiceStub(self._channel)


def _milliseconds(last_s: float | None) -> int:
    """Return a time as the contract has it: 0 stands for none."""
    return 0 if last_s is None else max(1, round(last_s * 1000))
