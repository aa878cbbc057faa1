"""Spans of a message: what `ReadSpans` streams.

Knows the contract. Does not know what spans mean.
"""

from dataclasses import dataclass

from edgeweave.errors import ProtocolError
from edgeweave.tracing.span import AttributeValue, Origin, Span, SpanContext
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave.wire.fields import chosen_field, required_field


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """Some spans of timelines; `next` is where to go on when all batches of an answer were read."""

    spans: tuple[Span, ...]
    next: int


_ORIGINS = {
    pb.SPAN_ORIGIN_SCHEDULER: Origin.SCHEDULER,
    pb.SPAN_ORIGIN_EDGE: Origin.EDGE,
    pb.SPAN_ORIGIN_CLOUD: Origin.CLOUD,
    pb.SPAN_ORIGIN_LINK: Origin.LINK,
}


def span_batch_of(response: pb.ReadSpansResponse) -> SpanBatch:
    """Return the spans in `response`; ProtocolError if a part is missing or not known here."""
    return SpanBatch(tuple(map(span_of, response.spans)), response.next)


def span_of(message: pb.Span) -> Span:
    """Return the span in `message`; ProtocolError if a part is missing or not known here."""
    if message.origin not in _ORIGINS:
        raise ProtocolError(f"Span.origin holds {message.origin}, which this version does not know")
    return Span(
        name=message.name,
        context=_context_of(required_field(message, "context")),
        parent=_context_of(message.parent) if message.HasField("parent") else None,
        origin=_ORIGINS[message.origin],
        begin_us=message.begin_us,
        end_us=message.end_us,
        attributes={attribute.name: _value_of(attribute) for attribute in message.attributes},
        links=tuple(map(_context_of, message.links)),
        error=message.error if message.HasField("error") else None,
    )


def _context_of(message: pb.SpanContext) -> SpanContext:
    return SpanContext(int.from_bytes(message.trace, "big"), int.from_bytes(message.span, "big"))


def _value_of(attribute: pb.SpanAttribute) -> AttributeValue:
    value: AttributeValue = getattr(attribute, chosen_field(attribute, "value"))
    return value
