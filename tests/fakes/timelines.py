"""Spans of a mesh that has served for a while: timelines of two engines without a gap, and the requests of it.

They are made by a rule, not played, so that there can be 100,000 of them; what a test asks is what it can count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

from edgeweave.interleave.accounts import Side
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.site import ORIGINS, timeline_context
from edgeweave.tracing.span import AttributeValue, Origin, Span, SpanContext
from edgeweave.tracing.step_spans import step_context
from edgeweave.tracing.store import SpanStore
from edgeweave.tracing.windows import window_of

SESSION = 7
WORK_US, BUBBLE_US = 3_000, 1_000
CYCLE_US = WORK_US + BUBBLE_US
"""Of each cycle an engine runs three quarters, and is in a bubble for the rest."""
STEPS_PER_REQUEST = 8
CAUSES = ("await_decode_hidden", "await_prefill_hidden", "grace", "link", "await_task")


@dataclass(frozen=True, slots=True)
class MadeTimelines:
    """Steps from `begin_us` on, one a cycle; each request has some of them to itself."""

    begin_us: int
    num_steps: int

    @property
    def end_us(self) -> int:
        """When the last cycle ends."""
        return self.begin_us + self.num_steps * CYCLE_US

    def request(self, number: int) -> SpanContext:
        """Return the context of a request."""
        return SpanContext.of("request", number)

    def stored(self, *, max_spans: int = 200_000) -> SpanStore:
        """Return a store that got all of it, in order of time."""
        store = SpanStore(max_spans)
        for number in range(-(-self.num_steps // STEPS_PER_REQUEST)):
            for span in self._below(number):
                store.add(span)
        for span in self._timelines():
            store.add_to_timelines(span)
        return store

    def _timelines(self) -> Iterator[Span]:
        causes = cycle(CAUSES)
        for step in range(self.num_steps):
            begin_us = self.begin_us + step * CYCLE_US
            request = self.request(step // STEPS_PER_REQUEST)
            for side, name, at_us in ((Side.EDGE, SpanName.TURNAROUND, 0), (Side.CLOUD, SpanName.BODY, BUBBLE_US)):
                yield _unit(side, name, step, begin_us + at_us, links=(step_context(request, step),))
                bubble_us = begin_us if at_us else begin_us + WORK_US
                yield _bubble(side, bubble_us, next(causes))
            if step % STEPS_PER_REQUEST == STEPS_PER_REQUEST - 1 or step == self.num_steps - 1:
                yield self._root(step // STEPS_PER_REQUEST)

    def _root(self, number: int) -> Span:
        begin_us = self.begin_us + number * STEPS_PER_REQUEST * CYCLE_US
        end_us = min(begin_us + STEPS_PER_REQUEST * CYCLE_US, self.end_us)
        named: dict[str, AttributeValue] = {
            Attribute.REQUEST_ID: f"req-{number}",
            Attribute.NUM_STEPS: (end_us - begin_us) // CYCLE_US,
        }
        return Span(SpanName.GENERATE, self.request(number), None, Origin.SCHEDULER, begin_us, end_us, named)

    def _below(self, number: int) -> Iterator[Span]:
        """Yield what is below a request: its queue, and its steps with their ways up."""
        root, first = self.request(number), number * STEPS_PER_REQUEST
        begin_us = self.begin_us + first * CYCLE_US
        yield Span(SpanName.QUEUE, root.child("queue"), root, Origin.SCHEDULER, begin_us, begin_us + 500)
        for step in islice(range(first, self.num_steps), STEPS_PER_REQUEST):
            begin_us, context = self.begin_us + step * CYCLE_US, step_context(root, step)
            yield Span(SpanName.STEP, context, root, Origin.SCHEDULER, begin_us, begin_us + CYCLE_US)
            way: dict[str, AttributeValue] = {
                Attribute.LANE: "decode",
                Attribute.DIRECTION: "up",
                Attribute.PAYLOAD_BYTES: 4096,
            }
            yield Span(
                SpanName.HOP, context.child("hop"), context, Origin.LINK, begin_us, begin_us + BUBBLE_US // 2, way
            )


def _unit(side: Side, name: str, step: int, begin_us: int, *, links: tuple[SpanContext, ...]) -> Span:
    parent = timeline_context(SESSION, side, window_of(begin_us))
    attributes = {Attribute.STEP: step, Attribute.PLAN: 3, Attribute.NUM_ROWS: 1, Attribute.NUM_TOKENS: 1}
    context = parent.child(name, step)
    return Span(name, context, parent, ORIGINS[side], begin_us, begin_us + WORK_US, attributes, links)


def _bubble(side: Side, begin_us: int, cause: str) -> Span:
    parent = timeline_context(SESSION, side, window_of(begin_us))
    context = parent.child(SpanName.BUBBLE, begin_us)
    attributes = {Attribute.CAUSE: cause}
    return Span(SpanName.BUBBLE, context, parent, ORIGINS[side], begin_us, begin_us + BUBBLE_US, attributes)
