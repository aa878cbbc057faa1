"""The spans of one decode step in the trace of one request, and which steps are traced.

Knows what a step consists of, and in which order. Does not know when it is told.
"""

from collections.abc import Sequence
from dataclasses import replace

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane, Stage, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.parts import StepParts
from edgeweave.tracing.site import Site
from edgeweave.tracing.span import AttributeValue, Origin, Span, SpanContext, SpanDraft, spans_below

STEPS_IN_FULL = 8
"""So many steps at the begin of a request are all traced."""
LATER_STEPS = 32
"""Of the later ones one in so many is."""


def is_traced(index: int) -> bool:
    """Return whether the step of a request that comes at `index`, counted from 0, has a span.

    A long generation would otherwise make thousands of spans that say the same; a request of n tokens has at most
    9 + n / 32 steps in its trace. The timelines of the engines have them all.
    """
    return index < STEPS_IN_FULL or index % LATER_STEPS == 0


def step_context(root: SpanContext, number: int) -> SpanContext:
    """Return the context of step `number` in the trace of the request whose span is `root`."""
    return root.child(SpanName.STEP, number)


def step_spans(parts: StepParts, roots: Sequence[SpanContext], site: Site) -> list[Span]:
    """Return a step and all that was told of it, below each of `roots`, the step itself first; times of the wall."""
    inside = [*_head(parts, site), *_body(parts, site), *_tail(parts, site)] if roots else []
    if not inside:
        return []
    begin_us, end_us = min(span.begin_us for span in inside), max(span.end_us for span in inside)
    known = next(ran for ran in (parts.back, *parts.bodies, parts.launch) if ran is not None)
    attributes: dict[str, AttributeValue] = {Attribute.STEP: parts.number, Attribute.PLAN: known.plan}
    attributes[Attribute.NUM_ROWS] = _num_rows(parts)
    step = SpanDraft(
        SpanName.STEP, Origin.SCHEDULER, begin_us, end_us, attributes, words=(parts.number,), error=parts.error
    )
    return spans_below(roots, step, inside)


def _num_rows(parts: StepParts) -> int:
    """Return the rows of a step. Those that a fused turnaround tells of are rows of the step that left."""
    known = [ran for ran in (parts.back, *parts.bodies, parts.launch) if ran is not None]
    told = [ran for ran in known if ran is not parts.back or ran.rider is None]
    return (told or known)[0].step_part.num_rows


def _head(parts: StepParts, site: Site) -> list[SpanDraft]:
    launch = parts.launch
    if launch is None:
        return []
    begin_us = launch.begin_us + launch.tail_us
    return [site.part(SpanName.HEAD, Side.EDGE, launch, begin_us=begin_us, end_us=launch.end_us)]


def _body(parts: StepParts, site: Site) -> list[SpanDraft]:
    """Return the body with the ways to and from it."""
    launch, bodies, back = parts.launch, parts.bodies, parts.back
    if not bodies:
        return []
    first, last = bodies[0], bodies[-1]
    up = (launch.end_us if launch is not None else None, first.step_part.ready_us)
    down = (last.end_us, back.step_part.ready_us if back is not None else None)
    hops = site.hops(Lane.DECODE, up=up, down=down, num_tokens=first.step_part.num_tokens)
    return [*hops, *(_part_of_body(body, site) for body in bodies)]


def _part_of_body(body: UnitRan, site: Site) -> SpanDraft:
    """Return the body of a step; where the step rode in a chunk, a part of it with its layers."""
    if body.stage is Stage.STEP:
        return site.part(SpanName.BODY, Side.CLOUD, body, begin_us=body.begin_us, end_us=body.end_us)
    draft = site.part(SpanName.BODY, Side.CLOUD, body, body.start, begin_us=body.begin_us, end_us=body.end_us)
    layers = {Attribute.START_LAYER: body.start, Attribute.STOP_LAYER: body.stop}
    return replace(draft, attributes={**draft.attributes, **layers})


def _tail(parts: StepParts, site: Site) -> list[SpanDraft]:
    back = parts.back
    if back is None:
        return []
    drawn_us = back.begin_us + back.tail_us
    drawing_us = max(back.begin_us, drawn_us - back.sampling_us)
    return [
        site.part(SpanName.TAIL, Side.EDGE, back, begin_us=back.begin_us, end_us=drawing_us),
        site.part(SpanName.SAMPLING, Side.EDGE, back, begin_us=drawing_us, end_us=drawn_us),
    ]
