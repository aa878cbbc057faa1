"""What `ReadSpans` answers: which of the spans that are kept are asked for, and where to go on.

Knows the request and the store. Does not know how a span becomes a message.
"""

from collections.abc import Iterator

from edgeweave.errors import InvalidRequestError
from edgeweave.tracing.span import TRACE_BYTES
from edgeweave.tracing.store import SpanStore
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave_scheduler.span_messages import span_responses


def kept_spans(asked: pb.ReadSpansRequest, store: SpanStore | None, *, now_us: int) -> Iterator[pb.ReadSpansResponse]:
    """Yield messages with the spans that `asked` asks for; none where none are kept.

    Args:
        asked: what a client wants.
        store: what is kept.
        now_us: the wall clock.

    Raises:
        InvalidRequestError: the trace is not named by 16 bytes.
    """
    if asked.WhichOneof("which") == "trace" and len(asked.trace) != TRACE_BYTES:
        raise InvalidRequestError(f"trace has {len(asked.trace)} bytes; a trace is named by {TRACE_BYTES}")
    if store is None:
        return
    begin_us = now_us - asked.last_ms * 1000 if asked.last_ms else 0
    match asked.WhichOneof("which"):
        case "timelines_after":
            spans, next_ = store.timelines(after=asked.timelines_after, begin_us=begin_us), store.num_of_timelines
            yield from span_responses(spans, next_=next_)
        case "trace":
            yield from span_responses(store.of_trace(int.from_bytes(asked.trace, "big")))
        case _:
            yield from span_responses(store.since(begin_us))
