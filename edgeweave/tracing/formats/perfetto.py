"""The trace events of Chrome, which Perfetto opens too. Times are microseconds.

Each engine is a process with one track, on which its units, bubbles and idle time follow each other. Chunks and steps
of requests overlap, so each has a track of its own, by its id. Source: the Trace Event Format of Chrome.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from edgeweave.telemetry import SpanName
from edgeweave.tracing.formats.otlp_json import span_hex
from edgeweave.tracing.span import Origin, Span, SpanContext

REQUESTS = 1
"""Process of what belongs to requests."""
ENGINES = {origin: number for number, origin in enumerate(Origin, start=2)}


def perfetto_json(spans: Iterable[Span]) -> dict[str, Any]:
    """Return the spans as trace events, in order of time."""
    known = list(spans)
    timelines = {span.context for span in known if span.name.startswith(SpanName.TIMELINE)}
    traces = {context.trace for context in timelines}
    parents = {span.context: span.parent for span in known}
    events: list[dict[str, Any]] = []
    for span in sorted(known, key=lambda span: (span.begin_us, -span.end_us)):
        if span.context in timelines:
            continue  # a window of time, no work
        is_of_engine = span.context.trace in traces or span.name in {SpanName.BUBBLE, SpanName.IDLE}
        events += [_of_engine(span)] if is_of_engine else _of_request(span, track=_track(span, parents))
    return {"traceEvents": [*_names(), *events], "displayTimeUnit": "ms"}


def _names() -> Iterator[dict[str, Any]]:
    yield _name(REQUESTS, "requests")
    for origin, process in ENGINES.items():
        yield _name(process, origin.value)


def _name(process: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}


def _of_engine(span: Span) -> dict[str, Any]:
    """Return a complete event on the track of its engine."""
    times = {"ts": span.begin_us, "dur": span.length_us}
    return {
        "ph": "X",
        "name": span.name,
        "cat": "engine",
        "pid": ENGINES[span.origin],
        "tid": 1,
        **times,
        **_args(span),
    }


def _of_request(span: Span, *, track: str) -> list[dict[str, Any]]:
    """Return begin and end of an event on a track of its own."""
    common = {"name": span.name, "cat": "request", "id": track, "pid": REQUESTS, "tid": 1}
    return [{"ph": "b", "ts": span.begin_us, **common, **_args(span)}, {"ph": "e", "ts": span.end_us, **common}]


def _args(span: Span) -> dict[str, Any]:
    return {"args": {"service": span.origin.value, **span.attributes}}


def _track(span: Span, parents: dict[SpanContext, SpanContext | None]) -> str:
    """Return the id of the chunk or step that a span is or belongs to: the last one below the request's own."""
    context = span.context
    while (parent := parents.get(context)) is not None and parent in parents:
        context = parent
    return span_hex(context.span)
