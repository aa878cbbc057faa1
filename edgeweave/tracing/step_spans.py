"""The spans of one decode step in the trace of one request, and which steps are traced.

Knows what a step consists of, and in which order. Does not know when it is told.
"""

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.parts import StepParts
from edgeweave.tracing.site import ORIGINS, Site
from edgeweave.tracing.span import Origin, Span, SpanContext
from edgeweave.tracing.windows import window_of

STEPS_IN_FULL = 32
"""The first steps of a request are all traced, and of the later ones one in so many."""


def is_traced(index: int) -> bool:
    """Return whether the step of a request that comes at `index`, counted from 0, has a span.

    A long generation would otherwise make thousands of spans that say the same; a request of n tokens has at most
    32 + n / 32 steps in its trace. The timelines of the engines have them all.
    """
    return index < STEPS_IN_FULL or index % STEPS_IN_FULL == 0


def step_context(root: SpanContext, number: int) -> SpanContext:
    """Return the context of step `number` in the trace of the request whose span is `root`."""
    return root.child("step", number)


def step_spans(parts: StepParts, root: SpanContext, site: Site) -> list[Span]:
    """Return a step and all that was told of it, the step itself first. Times by the wall clock."""
    context = step_context(root, parts.number)
    inside = [*_head(parts, context, site), *_body(parts, context, site), *_tail(parts, context, site)]
    if not inside:
        return []
    begin_us, end_us = min(span.begin_us for span in inside), max(span.end_us for span in inside)
    known = parts.back or parts.body or parts.launch
    attributes: dict[str, str | int] = {Attribute.STEP: parts.number}
    if known is not None:
        attributes |= {Attribute.PLAN: known.plan, Attribute.NUM_ROWS: known.num_rows}
    return [Span(SpanName.STEP, context, root, Origin.SCHEDULER, begin_us, end_us, attributes), *inside]


def _head(parts: StepParts, context: SpanContext, site: Site) -> list[Span]:
    launch = parts.launch
    if launch is None:
        return []
    return [_part(SpanName.HEAD, Side.EDGE, launch, context, site, launch.begin_us + launch.tail_us, launch.end_us)]


def _body(parts: StepParts, context: SpanContext, site: Site) -> list[Span]:
    """Return the body with the ways to and from it."""
    launch, body, back, spans = parts.launch, parts.body, parts.back, []
    if body is None:
        return []
    lane, num_tokens = Lane.DECODE, body.num_tokens
    if launch is not None and body.ready_us is not None:
        left_us, here_us = site.at(Side.EDGE, launch.end_us), site.at(Side.CLOUD, body.ready_us)
        spans.append(site.hop(context, lane=lane, is_up=True, begin_us=left_us, end_us=here_us, num_tokens=num_tokens))
    spans.append(_part(SpanName.BODY, Side.CLOUD, body, context, site, body.begin_us, body.end_us))
    if back is not None and back.ready_us is not None:
        left_us, here_us = site.at(Side.CLOUD, body.end_us), site.at(Side.EDGE, back.ready_us)
        spans.append(site.hop(context, lane=lane, is_up=False, begin_us=left_us, end_us=here_us, num_tokens=num_tokens))
    return spans


def _tail(parts: StepParts, context: SpanContext, site: Site) -> list[Span]:
    back = parts.back
    if back is None:
        return []
    drawn_us = back.begin_us + back.tail_us
    drawing_us = max(back.begin_us, drawn_us - back.sampling_us)
    return [
        _part(SpanName.TAIL, Side.EDGE, back, context, site, back.begin_us, drawing_us),
        _part(SpanName.SAMPLING, Side.EDGE, back, context, site, drawing_us, drawn_us),
    ]


def _part(name: str, side: Side, ran: UnitRan, context: SpanContext, site: Site, begin_us: int, end_us: int) -> Span:
    """Return the part of a unit between two times of its engine."""
    return Span(
        name,
        context.child(name),
        context,
        ORIGINS[side],
        site.at(side, begin_us),
        site.at(side, end_us),
        site.of_engine(side, ran),
        links=(site.unit(side, ran, window=window_of(site.at(side, ran.begin_us))),),
    )
