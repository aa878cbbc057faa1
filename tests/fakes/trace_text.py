"""Spans as a text tree that a reviewer can read: times, names, whose time it is, and what matters of the attributes."""

from collections.abc import Iterable, Iterator

from edgeweave.telemetry import Attribute
from edgeweave.tracing.span import Origin, Span, SpanContext

SHOWN = {
    Attribute.CHUNK: "chunk",
    Attribute.STEP: "step",
    Attribute.LANE: "lane",
    Attribute.DIRECTION: "",
    Attribute.CAUSE: "",
    Attribute.NUM_TOKENS: "tokens",
}
OWNERS = {Origin.SCHEDULER: "sched", Origin.EDGE: "edge", Origin.CLOUD: "cloud", Origin.LINK: "link"}


def tree_text(title: str, root: SpanContext, spans: Iterable[Span]) -> str:
    """Return all spans below `root`, children in order of time. Milliseconds."""
    children: dict[SpanContext | None, list[Span]] = {}
    for span in spans:
        children.setdefault(span.parent, []).append(span)
    return "\n".join([title, *_lines(root, children, 1), ""])


def _lines(parent: SpanContext, children: dict[SpanContext | None, list[Span]], depth: int) -> Iterator[str]:
    for span in sorted(children.get(parent, []), key=lambda span: (span.begin_us, span.end_us, span.name)):
        what = f"{'  ' * depth}{span.name}{_layers(span)}"
        times = f"{span.begin_us / 1000:8.3f} {span.end_us / 1000:8.3f}"
        yield f"{times}  {OWNERS[span.origin]:<5} {what:<30}{_shown(span)}".rstrip()
        yield from _lines(span.context, children, depth + 1)


def _layers(span: Span) -> str:
    start, stop = span.attributes.get(Attribute.START_LAYER), span.attributes.get(Attribute.STOP_LAYER)
    return "" if start is None else f" [{start}, {stop})"


def _shown(span: Span) -> str:
    known = [f"{word} {span.attributes[name]}".strip() for name, word in SHOWN.items() if name in span.attributes]
    return " ".join([*known, *([f"! {span.error}"] if span.error is not None else [])])
