"""The JSON that Jaeger's UI opens by upload: traces with their spans and processes. Times are microseconds.

Source: the model of Jaeger's query API. A parent is a reference CHILD_OF, a link is one FOLLOWS_FROM.
"""

from collections.abc import Iterable
from typing import Any

from edgeweave.tracing.formats.otlp_json import span_hex, trace_hex
from edgeweave.tracing.span import AttributeValue, Origin, Span, SpanContext

PROCESSES = {origin: f"p{number}" for number, origin in enumerate(Origin, start=1)}


def jaeger_json(spans: Iterable[Span]) -> dict[str, Any]:
    """Return the spans as traces."""
    by_trace: dict[int, list[Span]] = {}
    for span in spans:
        by_trace.setdefault(span.context.trace, []).append(span)
    return {"data": [_trace(trace, each) for trace, each in by_trace.items()]}


def _trace(trace: int, spans: list[Span]) -> dict[str, Any]:
    origins = {span.origin for span in spans}
    return {
        "traceID": trace_hex(trace),
        "spans": [_span(span) for span in spans],
        "processes": {
            process: {"serviceName": origin.value, "tags": []}
            for origin, process in PROCESSES.items()
            if origin in origins
        },
    }


def _span(span: Span) -> dict[str, Any]:
    parents = [_reference("CHILD_OF", span.parent)] if span.parent is not None else []
    error = [_tag("error", value=True)] if span.error is not None else []
    return {
        "traceID": trace_hex(span.context.trace),
        "spanID": span_hex(span.context.span),
        "operationName": span.name,
        "references": [*parents, *(_reference("FOLLOWS_FROM", link) for link in span.links)],
        "startTime": span.begin_us,
        "duration": span.length_us,
        "tags": [*(_tag(name, value=value) for name, value in span.attributes.items()), *error],
        "logs": [],
        "processID": PROCESSES[span.origin],
    }


def _reference(kind: str, context: SpanContext) -> dict[str, str]:
    return {"refType": kind, "traceID": trace_hex(context.trace), "spanID": span_hex(context.span)}


def _tag(name: str, *, value: AttributeValue) -> dict[str, Any]:
    kinds = {bool: "bool", int: "int64", float: "float64", str: "string"}
    return {"key": name, "type": kinds[type(value)], "value": value}
