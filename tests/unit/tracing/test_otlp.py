"""What goes to a collector, and what does not."""

from dataclasses import replace

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from edgeweave.telemetry import SpanName
from edgeweave.tracing.otlp import otlp_sink
from edgeweave.tracing.span import Origin, Span, SpanContext, SpanDraft, spans_below


class Taken(SpanProcessor):
    """Keeps the names of what ended."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.names.append(span.name)


def below(root: SpanContext) -> list[Span]:
    """A step of a request, and its body."""
    step, body = (SpanDraft(name, Origin.CLOUD, 0, 1) for name in (SpanName.STEP, SpanName.BODY))
    return spans_below([root], step, [body])


def test_a_request_that_was_not_sampled_is_not_sent() -> None:
    """Whoever began its trace did not want it: neither itself nor anything below it; all others are sent."""
    taken = Taken()
    sink = otlp_sink(taken)
    root = SpanContext.of("request")
    for span in below(replace(root, is_sampled=False)):
        sink(span)
    assert taken.names == []
    for span in below(root):
        sink(span)
    assert taken.names == [SpanName.STEP, SpanName.BODY]


def test_a_context_is_the_same_sampled_or_not() -> None:
    """Links lead to it either way."""
    root = SpanContext.of("request")
    unsampled = replace(root, is_sampled=False)
    assert unsampled == root
    assert unsampled.child("step", 1) == root.child("step", 1)
    assert not unsampled.child("step", 1).is_sampled
