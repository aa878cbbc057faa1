"""How the scheduler traces: what watches the core, who takes the spans, and where each request's begin.

Knows the spans of OpenTelemetry that a request has here, and those that are made of what engines report. Where nobody
takes spans there is no tracing, and it costs nothing.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import Span as OtelSpan

from edgeweave.clock import Clock
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.otlp import otlp_sink, span_context
from edgeweave.tracing.recorder import Recorder
from edgeweave.tracing.span import AttributeValue, Origin, Span, SpanContext
from edgeweave.tracing.store import SpanStore
from edgeweave.tracing.tracer import Sink, Sinks


@dataclass(frozen=True, slots=True)
class Tracing:
    """What makes spans of all that the core does. `store` keeps the newest, `None` where nobody will read them."""

    recorder: Recorder
    store: SpanStore | None
    clock: Clock

    @classmethod
    def of(
        cls, core: SchedulerCore, *, processor: SpanProcessor | None, max_spans: int, clock: Clock
    ) -> "Tracing | None":
        """Return it; `None` without a processor and without spans to keep."""
        store = SpanStore(max_spans) if max_spans else None
        takers = [Sinks.one(otlp_sink(processor))] if processor is not None else []
        if store is not None:
            takers.append(Sinks(store.add, store.add_to_timelines))
        if not takers:
            return None
        sinks = Sinks(_to_all(each.requests for each in takers), _to_all(each.timelines for each in takers))
        wall_us = time.time_ns() // 1000 - clock.now_us()
        return cls(Recorder(core, sinks, wall_us=wall_us), store, clock)

    @contextmanager
    def watching(self, request: Request, span: OtelSpan) -> Iterator[None]:
        """Let spans be made below `span` of what is done for a request; it gets their counts at the end."""
        if self.store is None and not span.is_recording():
            yield  # nobody wants them
            return
        begin_us = self.clock.now_us()
        root = _root_of(request, span, begin_us)
        traced = self.recorder.watch(request.request_id, root, arrived_us=begin_us)
        try:
            yield
        finally:
            self.recorder.forget(request.request_id)
            counts = {Attribute.NUM_STEPS: traced.num_steps, Attribute.NUM_STEPS_TRACED: traced.num_steps_traced}
            span.set_attributes(counts)
            self._keep(request, root, begin_us, counts)

    @property
    def now_us(self) -> int:
        """The wall clock."""
        return self.recorder.wall_us + self.clock.now_us()

    def _keep(self, request: Request, root: SpanContext, begin_us: int, counts: dict[str, int]) -> None:
        """Keep the request's own span beside those below it; a collector gets it from OpenTelemetry."""
        if self.store is not None:
            wall_us, end_us = self.recorder.wall_us, self.clock.now_us()
            named: dict[str, AttributeValue] = {Attribute.REQUEST_ID: request.request_id, **counts}
            self.store.add_to_timelines(
                Span(SpanName.GENERATE, root, None, Origin.SCHEDULER, wall_us + begin_us, wall_us + end_us, named)
            )


def _root_of(request: Request, span: OtelSpan, begin_us: int) -> SpanContext:
    """Return the context of `span`, or where it records nothing one of our own, which no collector gets."""
    if span.is_recording():
        return span_context(span.get_span_context())
    return replace(SpanContext.of("request", request.request_id, begin_us), is_sampled=False)


def _to_all(sinks: Iterable[Sink]) -> Sink:
    known = tuple(sinks)
    if len(known) == 1:
        return known[0]

    def tell(span: Span) -> None:
        for sink in known:
            sink(span)

    return tell
