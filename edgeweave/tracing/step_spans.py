"""The spans of one decode step in the trace of one request, and which steps are traced.

Knows what a step consists of, and in which order. Does not know when it is told.
"""

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.parts import StepParts
from edgeweave.tracing.site import Site
from edgeweave.tracing.span import Origin, Span, SpanContext

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
    begin_us = launch.begin_us + launch.tail_us
    return [site.part(SpanName.HEAD, Side.EDGE, launch, context, begin_us=begin_us, end_us=launch.end_us)]


def _body(parts: StepParts, context: SpanContext, site: Site) -> list[Span]:
    """Return the body with the ways to and from it."""
    launch, body, back = parts.launch, parts.body, parts.back
    if body is None:
        return []
    up = (launch.end_us if launch is not None else None, body.ready_us)
    down = (body.end_us, back.ready_us if back is not None else None)
    hops = site.hops(context, Lane.DECODE, up=up, down=down, num_tokens=body.num_tokens)
    return [*hops, site.part(SpanName.BODY, Side.CLOUD, body, context, begin_us=body.begin_us, end_us=body.end_us)]


def _tail(parts: StepParts, context: SpanContext, site: Site) -> list[Span]:
    back = parts.back
    if back is None:
        return []
    drawn_us = back.begin_us + back.tail_us
    drawing_us = max(back.begin_us, drawn_us - back.sampling_us)
    return [
        site.part(SpanName.TAIL, Side.EDGE, back, context, begin_us=back.begin_us, end_us=drawing_us),
        site.part(SpanName.SAMPLING, Side.EDGE, back, context, begin_us=drawing_us, end_us=drawn_us),
    ]
