"""The spans of one chunk in the trace of one request.

Knows what a chunk consists of, and in which order. Does not know when it is told.
"""

from dataclasses import replace

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.parts import ChunkParts
from edgeweave.tracing.site import Site
from edgeweave.tracing.span import Origin, Span, SpanContext


def chunk_context(root: SpanContext, number: int) -> SpanContext:
    """Return the context of chunk `number` in the trace of the request whose span is `root`."""
    return root.child("chunk", number)


def chunk_spans(parts: ChunkParts, root: SpanContext, site: Site) -> list[Span]:
    """Return a chunk and all that was told of it, the chunk itself first. Times by the wall clock."""
    context = chunk_context(root, parts.chunk.chunk)
    inside = [
        *(_unit(SpanName.HEAD, Side.EDGE, ran, context, site) for ran in parts.heads),
        *_hops(parts, context, site),
        *(_segment(ran, context, site) for ran in parts.segments),
        *(_unit(SpanName.TAIL, Side.EDGE, ran, context, site) for ran in parts.tails),
    ]
    begin_us = min([site.here(parts.issued_us), *(span.begin_us for span in inside)])
    answered_us = [site.here(parts.answered_us)] if parts.answered_us is not None else []
    end_us = max([begin_us, *answered_us, *(span.end_us for span in inside)])
    chunk = parts.chunk
    attributes = {
        Attribute.CHUNK: chunk.chunk,
        Attribute.PLAN: chunk.plan,
        Attribute.NUM_ROWS: len(chunk.rows),
        Attribute.NUM_TOKENS: chunk.num_tokens,
    }
    return [Span(SpanName.CHUNK, context, root, Origin.SCHEDULER, begin_us, end_us, attributes), *inside]


def _hops(parts: ChunkParts, context: SpanContext, site: Site) -> list[Span]:
    """Return the way up from the last piece of the head, and the way down from the last segment."""
    heads, segments, tails = parts.heads, parts.segments, parts.tails
    if not segments:
        return []
    up = (heads[-1].end_us if heads else None, segments[0].ready_us)
    down = (segments[-1].end_us, tails[0].ready_us if tails else None)
    return site.hops(context, Lane.PREFILL, up=up, down=down, num_tokens=parts.chunk.num_tokens)


def _segment(ran: UnitRan, context: SpanContext, site: Site) -> Span:
    span = _unit(SpanName.SEGMENT, Side.CLOUD, ran, context, site)
    layers = {Attribute.START_LAYER: ran.start, Attribute.STOP_LAYER: ran.stop}
    return replace(span, attributes={**span.attributes, **layers, Attribute.LANE: "prefill"})


def _unit(name: str, side: Side, ran: UnitRan, context: SpanContext, site: Site) -> Span:
    return site.part(name, side, ran, context, ran.start, begin_us=ran.begin_us, end_us=ran.end_us)
