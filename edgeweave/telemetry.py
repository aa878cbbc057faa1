"""Logs and spans: how they are set up, and the names that they use.

Knows formats, exporters and names. Does not know what is worth a line or a span; that is said where it happens.
"""

import logging
import sys
from threading import Timer
from typing import Any, Final, Literal

import structlog
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from structlog.typing import EventDict, Processor

LONGEST_FLUSH_S = 3.0
"""How long the spans that are left when a process ends may take on their way to the collector."""

LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class SpanName:
    """Names of spans."""

    CHAT: Final = "chat {model}"
    """A request at the gateway."""
    GENERATE: Final = "generate"
    """A request at the scheduler."""
    QUEUE: Final = "queue"
    """A request that waits for its first chunk."""
    CHUNK: Final = "chunk"
    """A prefill chunk, from issue to answer."""
    STEP: Final = "step"
    """A decode step, from the head that begins it to the tokens that it drew."""
    HEAD: Final = "head"
    """A piece of a prefill head, or the head of a step, on the edge."""
    BODY: Final = "body"
    """The body of a step in the cloud."""
    TAIL: Final = "tail"
    """A piece of a prefill tail, or the tail of a step, on the edge; without drawing tokens."""
    SAMPLING: Final = "sampling"
    """Drawing the tokens at the end of a tail."""
    TIMELINE: Final = "timeline"
    """What one engine did in one window of time."""
    BUBBLE: Final = "bubble"
    """An engine had open sequences and ran nothing; its cause is an attribute."""
    IDLE: Final = "idle"
    """An engine had no open sequence. No bubble."""
    TURNAROUND: Final = "turnaround"
    """Tail of a step, sampling, head of the next step, on the edge."""
    SEGMENT: Final = "segment"
    """Body layers that the cloud ran without yielding."""
    HOP: Final = "hop"
    """One crossing of the link."""


class Attribute:
    """Names of span attributes, each with its unit at its end."""

    REQUEST_ID: Final = "edgeweave.request_id"
    SESSION: Final = "edgeweave.session"
    CHUNK: Final = "edgeweave.chunk"
    STEP: Final = "edgeweave.step"
    PLAN: Final = "edgeweave.plan"
    STAGE: Final = "edgeweave.stage"
    LANE: Final = "edgeweave.lane"
    DIRECTION: Final = "edgeweave.direction"
    CAUSE: Final = "edgeweave.cause"
    SIDE: Final = "edgeweave.side"
    CLOCK_OFFSET_US: Final = "edgeweave.clock_offset_us"
    NUM_STEPS: Final = "edgeweave.num_steps"
    NUM_STEPS_TRACED: Final = "edgeweave.num_steps_traced"
    START_LAYER: Final = "edgeweave.start_layer"
    STOP_LAYER: Final = "edgeweave.stop_layer"
    START_ROW: Final = "edgeweave.start_row"
    STOP_ROW: Final = "edgeweave.stop_row"
    NUM_ROWS: Final = "edgeweave.num_rows"
    NUM_TOKENS: Final = "edgeweave.num_tokens"
    NUM_PROMPT_TOKENS: Final = "edgeweave.num_prompt_tokens"
    NUM_OUTPUT_TOKENS: Final = "edgeweave.num_output_tokens"
    NUM_SKIPPED_ROWS: Final = "edgeweave.num_skipped_rows"
    FINISH_REASON: Final = "edgeweave.finish_reason"
    WAITING_US: Final = "edgeweave.waiting_us"
    TIME_TO_FIRST_TOKEN_US: Final = "edgeweave.time_to_first_token_us"  # noqa: S105 - a name, no secret
    PAYLOAD_BYTES: Final = "edgeweave.payload_bytes"


def configure_logging(level: LogLevel, *, fmt: LogFormat, service: str) -> None:
    """Send this process's logs to stderr, one event a line, those of the standard library's loggers among them.

    Args:
        level: the lowest level that is written.
        fmt: `console` for people, `json` for machines: one object a line.
        service: name of the service in every line.
    """
    shared = _shared_processors(service)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(fmt)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def span_processor(otlp_endpoint: str | None) -> SpanProcessor | None:
    """Return what exports spans in a thread of its own, `None` without an endpoint.

    Its queue is bounded: a collector that is slow or gone costs spans, and never holds up who makes them, nor for long
    the end of the process.

    Args:
        otlp_endpoint: where an OTLP collector listens for gRPC, as `http://host:port`.
    """
    return None if otlp_endpoint is None else _Exporting(OTLPSpanExporter(endpoint=otlp_endpoint))


class _Exporting(BatchSpanProcessor):
    """Exports spans in batches; what is left at the end gets `LONGEST_FLUSH_S`, and not half a minute."""

    def __init__(self, exporter: OTLPSpanExporter) -> None:
        super().__init__(exporter)
        self._ended = exporter.shutdown

    def shutdown(self) -> None:
        """Export what is left, or give it up when its time is over."""
        # An exporter that has ended breaks off what it does, and refuses what comes.
        giving_up = Timer(LONGEST_FLUSH_S, self._ended)
        giving_up.start()
        try:
            super().shutdown()  # type: ignore[no-untyped-call] # untyped there
        finally:
            giving_up.cancel()


def tracer_provider(service: str, *, processor: SpanProcessor | None) -> TracerProvider:
    """Return a provider of tracers; without a processor it records nothing, so that a span costs little.

    The caller shuts it down, which exports what is left. Which requests are traced is decided by whoever sent them, or
    by OpenTelemetry's own variables `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; by default all are.

    Args:
        service: name of the service in the resource of its spans.
        processor: what takes the spans.
    """
    resource = Resource.create({SERVICE_NAME: f"edgeweave-{service}"})
    if processor is None:
        return TracerProvider(resource=resource, sampler=ALWAYS_OFF)
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(processor)
    return provider


def _shared_processors(service: str) -> list[Processor]:
    def add_service(_logger: Any, _method: str, event: EventDict) -> EventDict:
        return {"service": service, **event}

    return [
        add_service,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _renderers(fmt: LogFormat) -> list[Processor]:
    if fmt == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # Plain traces in both forms: the richer ones print local variables, and prompts are among them.
    plain_traceback = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain_traceback)]
