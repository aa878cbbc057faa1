"""Spans as OpenTelemetry's own, with the resource of whoever's time they are, and on to a collector.

Knows the SDK's span as a value and its processor, which exports in a thread of its own: its queue is bounded, and a
collector that is slow or gone costs spans and nothing else. Does not know what a span means.
"""

from collections.abc import Callable

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace import SpanContext as OtelContext

from edgeweave.tracing.span import Origin, Span, SpanContext

SCOPE = InstrumentationScope("edgeweave.tracing")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NS_PER_US = 1000


def otel_context(context: SpanContext) -> OtelContext:
    """Return a context as OpenTelemetry has it, sampled."""
    return OtelContext(context.trace, context.span, is_remote=False, trace_flags=_SAMPLED)


def span_context(context: OtelContext) -> SpanContext:
    """Return a context of OpenTelemetry as ours."""
    return SpanContext(context.trace_id, context.span_id)


def otel_span(span: Span, *, resource: Resource) -> ReadableSpan:
    """Return a span that has ended, as exporters take it."""
    return ReadableSpan(
        name=span.name,
        context=otel_context(span.context),
        parent=otel_context(span.parent) if span.parent is not None else None,
        resource=resource,
        attributes=dict(span.attributes),
        links=[Link(otel_context(link)) for link in span.links],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.error) if span.error is not None else Status(StatusCode.UNSET),
        start_time=span.begin_us * _NS_PER_US,
        end_time=span.end_us * _NS_PER_US,
        instrumentation_scope=SCOPE,
    )


def otlp_sink(processor: SpanProcessor) -> Callable[[Span], None]:
    """Return a sink that gives each span of a sampled trace to `processor` at once."""
    resources = {origin: Resource.create({SERVICE_NAME: origin.value}) for origin in Origin}

    def export(span: Span) -> None:
        if not span.context.is_sampled:
            return
        processor.on_end(otel_span(span, resource=resources[span.origin]))

    return export
