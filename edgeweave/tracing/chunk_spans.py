"""The spans of one chunk in the trace of one request.

Knows what a chunk consists of, and in which order. Does not know when it is told.
"""

from collections.abc import Sequence
from dataclasses import replace

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.parts import ChunkParts
from edgeweave.tracing.site import Site
from edgeweave.tracing.span import AttributeValue, Origin, Span, SpanContext, SpanDraft, spans_below


def chunk_context(root: SpanContext, number: int) -> SpanContext:
    """Return the context of chunk `number` in the trace of the request whose span is `root`."""
    return root.child(SpanName.CHUNK, number)


def chunk_spans(parts: ChunkParts, roots: Sequence[SpanContext], site: Site) -> list[Span]:
    """Return a chunk and all that was told of it, below each of `roots`, the chunk itself first; times of the wall."""
    if not roots:
        return []
    inside = [
        *(_unit(SpanName.HEAD, Side.EDGE, ran, site) for ran in parts.heads),
        *_hops(parts, site),
        *(_segment(ran, site) for ran in parts.segments),
        *(_unit(SpanName.TAIL, Side.EDGE, ran, site) for ran in parts.tails),
    ]
    begin_us = min([site.here(parts.issued_us), *(span.begin_us for span in inside)])
    answered_us = [site.here(parts.answered_us)] if parts.answered_us is not None else []
    end_us = max([begin_us, *answered_us, *(span.end_us for span in inside)])
    chunk = parts.chunk
    attributes: dict[str, AttributeValue] = {
        Attribute.CHUNK: chunk.chunk,
        Attribute.PLAN: chunk.plan,
        Attribute.NUM_ROWS: len(chunk.rows),
        Attribute.NUM_TOKENS: chunk.num_tokens,
    }
    whole = SpanDraft(
        SpanName.CHUNK, Origin.SCHEDULER, begin_us, end_us, attributes, words=(chunk.chunk,), error=parts.error
    )
    return spans_below(roots, whole, inside)


def _hops(parts: ChunkParts, site: Site) -> list[SpanDraft]:
    """Return the way up from the last piece of the head, and the way down from the last segment."""
    heads, segments, tails = parts.heads, parts.segments, parts.tails
    if not segments:
        return []
    up = (heads[-1].end_us if heads else None, segments[0].ready_us)
    down = (segments[-1].end_us, tails[0].ready_us if tails else None)
    return site.hops(Lane.PREFILL, up=up, down=down, num_tokens=parts.chunk.num_tokens)


def _segment(ran: UnitRan, site: Site) -> SpanDraft:
    draft = _unit(SpanName.SEGMENT, Side.CLOUD, ran, site)
    layers = {Attribute.START_LAYER: ran.start, Attribute.STOP_LAYER: ran.stop}
    return replace(draft, attributes={**draft.attributes, **layers, Attribute.LANE: "prefill"})


def _unit(name: str, side: Side, ran: UnitRan, site: Site) -> SpanDraft:
    """Return the unit as a part of its chunk; the tail of a step that a fused head begins with is not."""
    return site.part(name, side, ran, ran.start, begin_us=ran.begin_us + ran.tail_us, end_us=ran.end_us)
