"""Spans on their way from the scheduler to whoever reads them."""

import pytest

from edgeweave.client.spans import span_of
from edgeweave.errors import ProtocolError
from edgeweave.tracing.span import Origin, Span, SpanContext
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave_scheduler.span_messages import SPANS_PER_MESSAGE, span_responses
from fakes.traced import woven


def test_spans_come_back_equal_from_their_bytes() -> None:
    """Every field of every span, some hundred in a message."""
    context = SpanContext(2**128 - 1, 1)
    odd = Span("x", context, SpanContext(5, 6), Origin.LINK, 0, 9, {"a": True, "b": -3, "c": 0.5, "d": "e"}, error="f")
    spans = [odd, *woven("1p1d").spans] * 5
    responses = [pb.ReadSpansResponse.FromString(each.SerializeToString()) for each in span_responses(spans)]
    assert [span_of(message) for response in responses for message in response.spans] == spans
    assert len(responses) == -(-len(spans) // SPANS_PER_MESSAGE)


def test_a_span_of_nobody_is_refused() -> None:
    """A scheduler of a later version may know of more."""
    with pytest.raises(ProtocolError, match=r"Span\.origin holds 0"):
        span_of(pb.Span(context=pb.SpanContext(trace=b"1", span=b"2")))
