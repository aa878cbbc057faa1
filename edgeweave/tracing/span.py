"""A span: one piece of the time of a request or of an engine, as a value.

Knows no library of telemetry; `edgeweave.tracing.otlp` makes spans of OpenTelemetry of it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

TRACE_BYTES, SPAN_BYTES = 16, 8
AttributeValue = str | int | float | bool


class Origin(Enum):
    """Whose time a span is; its value is the name of the service in the span's resource."""

    SCHEDULER = "edgeweave-scheduler"
    EDGE = "edgeweave-edge"
    CLOUD = "edgeweave-cloud"
    LINK = "edgeweave-link"


@dataclass(frozen=True, slots=True)
class SpanContext:
    """Names a span: 128 bits of trace and 64 of span, neither of them 0."""

    trace: int
    span: int

    @classmethod
    def of(cls, *words: object) -> "SpanContext":
        """Return the context that these words name, the same each time: who links to a span needs not wait for it."""
        digest = hashlib.blake2b("\0".join(map(str, words)).encode(), digest_size=TRACE_BYTES + SPAN_BYTES).digest()
        return cls(_number(digest[:TRACE_BYTES]), _number(digest[TRACE_BYTES:]))

    def child(self, *words: object) -> "SpanContext":
        """Return the context that these words name within this trace, below this span."""
        return SpanContext(self.trace, SpanContext.of(self.trace, self.span, *words).span)


@dataclass(frozen=True, slots=True)
class Span:
    """One span. Times are microseconds of the site's wall clock, `end_us` not before `begin_us`."""

    name: str
    context: SpanContext
    parent: SpanContext | None
    origin: Origin
    begin_us: int
    end_us: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    links: tuple[SpanContext, ...] = ()
    error: str | None = None

    @property
    def length_us(self) -> int:
        """How long it took."""
        return self.end_us - self.begin_us


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big") or 1
