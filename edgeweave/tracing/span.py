"""A span: one piece of the time of a request or of an engine, as a value.

Knows no library of telemetry; `edgeweave.tracing.otlp` makes spans of OpenTelemetry of it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
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
    """Names a span: 128 bits of trace and 64 of span, neither of them 0.

    What is not sampled was not wanted by whoever began the trace: it is not sent to a collector.
    """

    trace: int
    span: int
    is_sampled: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, *words: object) -> "SpanContext":
        """Return the context that these words name, the same each time: who links to a span needs not wait for it."""
        digest = hashlib.blake2b(_text(words), digest_size=TRACE_BYTES + SPAN_BYTES).digest()
        return cls(_number(digest[:TRACE_BYTES]), _number(digest[TRACE_BYTES:]))

    def child(self, *words: object) -> "SpanContext":
        """Return the context that these words name within this trace, below this span."""
        parent = self.trace.to_bytes(TRACE_BYTES, "big") + self.span.to_bytes(SPAN_BYTES, "big")
        digest = hashlib.blake2b(_text(words), key=parent, digest_size=SPAN_BYTES).digest()
        return SpanContext(self.trace, _number(digest), self.is_sampled)


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


@dataclass(frozen=True, slots=True)
class SpanDraft:
    """A span before it is known whose it is: a step of sixteen rows has one in the trace of each of their requests.

    `words` tell it apart from others of its name below the same parent.
    """

    name: str
    origin: Origin
    begin_us: int
    end_us: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    links: tuple[SpanContext, ...] = ()
    words: tuple[object, ...] = ()
    error: str | None = None

    def below(self, parent: SpanContext) -> Span:
        """Return the span in the trace of `parent`."""
        return Span(
            self.name,
            parent.child(self.name, *self.words),
            parent,
            self.origin,
            self.begin_us,
            self.end_us,
            self.attributes,
            self.links,
            self.error,
        )


def spans_below(roots: Iterable[SpanContext], whole: SpanDraft, inside: Sequence[SpanDraft]) -> list[Span]:
    """Return `whole` below each of `roots`, and after each all that is inside it."""
    spans = []
    for root in roots:
        span = whole.below(root)
        spans += [span, *(draft.below(span.context) for draft in inside)]
    return spans


def _text(words: tuple[object, ...]) -> bytes:
    return "\0".join(map(str, words)).encode()


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big") or 1
