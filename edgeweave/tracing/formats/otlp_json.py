"""OTLP as JSON: what collectors take as a file or over HTTP. Ids are hex, times are nanoseconds in strings.

Source: the JSON mapping of the OpenTelemetry protocol, 1.x.
"""

from collections.abc import Iterable
from typing import Any

from edgeweave.tracing.span import SPAN_BYTES, TRACE_BYTES, AttributeValue, Origin, Span

_INTERNAL = 1
_ERROR = 2


def otlp_json(spans: Iterable[Span]) -> dict[str, Any]:
    """Return the spans, grouped by whose time they are."""
    by_origin: dict[Origin, list[Span]] = {}
    for span in spans:
        by_origin.setdefault(span.origin, []).append(span)
    return {"resourceSpans": [_resource_spans(origin, each) for origin, each in by_origin.items()]}


def trace_hex(trace: int) -> str:
    """Return a trace id as viewers write it."""
    return f"{trace:0{2 * TRACE_BYTES}x}"


def span_hex(span: int) -> str:
    """Return a span id as viewers write it."""
    return f"{span:0{2 * SPAN_BYTES}x}"


def _resource_spans(origin: Origin, spans: list[Span]) -> dict[str, Any]:
    return {
        "resource": {"attributes": [_attribute("service.name", origin.value)]},
        "scopeSpans": [{"scope": {"name": "edgeweave.tracing"}, "spans": [_span(span) for span in spans]}],
    }


def _span(span: Span) -> dict[str, Any]:
    parent = {"parentSpanId": span_hex(span.parent.span)} if span.parent is not None else {}
    status = {"code": _ERROR, "message": span.error} if span.error is not None else {}
    return {
        "traceId": trace_hex(span.context.trace),
        "spanId": span_hex(span.context.span),
        **parent,
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(span.begin_us * 1000),
        "endTimeUnixNano": str(span.end_us * 1000),
        "attributes": [_attribute(name, value) for name, value in span.attributes.items()],
        "links": [{"traceId": trace_hex(link.trace), "spanId": span_hex(link.span)} for link in span.links],
        "status": status,
    }


def _attribute(name: str, value: AttributeValue) -> dict[str, Any]:
    return {"key": name, "value": _value(value)}


def _value(value: AttributeValue) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # 64 bits, which a number of JSON does not hold
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
