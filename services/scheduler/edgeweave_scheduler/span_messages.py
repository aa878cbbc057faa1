"""Spans as messages: what `ReadSpans` streams."""

from collections.abc import Iterable, Iterator
from itertools import islice

from edgeweave.tracing.span import SPAN_BYTES, TRACE_BYTES, AttributeValue, Origin, Span, SpanContext
from edgeweave.v1 import scheduler_pb2 as pb

SPANS_PER_MESSAGE = 100
"""Few, so that whoever makes or reads a message is away from its event loop for two milliseconds at most."""
_ORIGINS = {
    Origin.SCHEDULER: pb.SPAN_ORIGIN_SCHEDULER,
    Origin.EDGE: pb.SPAN_ORIGIN_EDGE,
    Origin.CLOUD: pb.SPAN_ORIGIN_CLOUD,
    Origin.LINK: pb.SPAN_ORIGIN_LINK,
}


def span_responses(spans: Iterable[Span], *, next_: int = 0) -> Iterator[pb.ReadSpansResponse]:
    """Yield messages with all spans, some in each, and with where to go on; at least one that says this."""
    left = iter(spans)
    some = list(islice(left, SPANS_PER_MESSAGE))
    yield pb.ReadSpansResponse(spans=map(_span_message, some), next=next_)
    while some := list(islice(left, SPANS_PER_MESSAGE)):
        yield pb.ReadSpansResponse(spans=map(_span_message, some), next=next_)


def _span_message(span: Span) -> pb.Span:
    return pb.Span(
        context=_context_message(span.context),
        parent=_context_message(span.parent) if span.parent is not None else None,
        origin=_ORIGINS[span.origin],
        name=span.name,
        begin_us=span.begin_us,
        end_us=span.end_us,
        attributes=[_attribute_message(name, value) for name, value in span.attributes.items()],
        links=map(_context_message, span.links),
        error=span.error,
    )


def _context_message(context: SpanContext) -> pb.SpanContext:
    trace, span = context.trace.to_bytes(TRACE_BYTES, "big"), context.span.to_bytes(SPAN_BYTES, "big")
    return pb.SpanContext(trace=trace, span=span)


def _attribute_message(name: str, value: AttributeValue) -> pb.SpanAttribute:
    match value:
        case bool():
            return pb.SpanAttribute(name=name, flag=value)
        case int():
            return pb.SpanAttribute(name=name, whole=value)
        case float():
            return pb.SpanAttribute(name=name, real=value)
        case str():
            return pb.SpanAttribute(name=name, text=value)
