"""The spans of one chunk in the trace of one request.

Knows what a chunk consists of, and in which order. Does not know when it is told.
"""

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.parts import ChunkParts
from edgeweave.tracing.site import ORIGINS, Site
from edgeweave.tracing.span import Origin, Span, SpanContext
from edgeweave.tracing.windows import window_of


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
    if site.holds_body:
        return []
    lane, num_tokens, hops = Lane.PREFILL, parts.chunk.num_tokens, []
    ready_us = parts.segments[0].ready_us if parts.segments else None
    if parts.heads and ready_us is not None:
        left_us = site.at(Side.EDGE, parts.heads[-1].end_us)
        here_us = site.at(Side.CLOUD, ready_us)
        hops.append(site.hop(context, lane=lane, is_up=True, begin_us=left_us, end_us=here_us, num_tokens=num_tokens))
    back_us = parts.tails[0].ready_us if parts.tails else None
    if parts.segments and back_us is not None:
        left_us = site.at(Side.CLOUD, parts.segments[-1].end_us)
        here_us = site.at(Side.EDGE, back_us)
        hops.append(site.hop(context, lane=lane, is_up=False, begin_us=left_us, end_us=here_us, num_tokens=num_tokens))
    return hops


def _segment(ran: UnitRan, context: SpanContext, site: Site) -> Span:
    layers: dict[str, str | int] = {
        Attribute.START_LAYER: ran.start,
        Attribute.STOP_LAYER: ran.stop,
        Attribute.LANE: "prefill",
    }
    return _unit(SpanName.SEGMENT, Side.CLOUD, ran, context, site, **layers)


def _unit(name: str, side: Side, ran: UnitRan, context: SpanContext, site: Site, **more: str | int) -> Span:
    begin_us, end_us = site.at(side, ran.begin_us), site.at(side, ran.end_us)
    return Span(
        name,
        context.child(name, ran.start),
        context,
        ORIGINS[side],
        begin_us,
        end_us,
        site.of_engine(side, ran) | more,
        links=(site.unit(side, ran, window=window_of(begin_us)),),
    )
