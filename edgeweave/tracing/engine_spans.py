"""The timeline of one engine as spans: what ran, the bubbles between with their causes, and idle time.

One trace for each engine and window of time. Knows that the accounts have no gap but idle time. Does not know requests:
whoever asks says which spans a unit belongs to.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Bubble, Stage, Timeline, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.site import ORIGINS, Site, timeline_context
from edgeweave.tracing.span import AttributeValue, Span, SpanContext
from edgeweave.tracing.windows import WINDOW_US, window_of

NAMES = {
    Stage.HEAD: SpanName.HEAD,
    Stage.SEGMENT: SpanName.SEGMENT,
    Stage.TAIL: SpanName.TAIL,
    Stage.STEP: SpanName.BODY,
    Stage.TURNAROUND: SpanName.TURNAROUND,
    Stage.FUSED_SEGMENT: SpanName.SEGMENT,
    Stage.FUSED_HEAD: SpanName.HEAD,
    Stage.BOARDING: SpanName.BODY,
}
BelongsTo = Callable[[UnitRan], tuple[SpanContext, ...]]
"""Returns the spans of requests that a unit worked for."""


@dataclass(slots=True)
class EngineTimeline:
    """The timeline of one engine in one session.

    `_began_us` is the wall clock, `_until_us` the engine's: its accounts have no gap by that, whatever is learnt of it.
    """

    side: Side
    site: Site
    _began_us: int | None = None
    _until_us: int | None = None
    _window: int | None = None
    _told: list[UnitRan | Bubble] = field(default_factory=list)

    def take(self, timeline: Timeline, belongs_to: BelongsTo) -> Iterator[Span]:
        """Take one report; yield the spans of the one before, and the root of each window that it ended.

        A report may come before the answer of a step in it, which says whose step that was; the next one does not.
        """
        yield from self._spans(belongs_to)
        self._told = sorted([*timeline.ran, *timeline.bubbles], key=lambda item: item.begin_us)

    def end(self, belongs_to: BelongsTo) -> Iterator[Span]:
        """Yield what is left, and the root of the window that is open; the session is over."""
        yield from self._spans(belongs_to)
        if self._window is not None and self._until_us is not None:
            yield self._root(self._window, self.site.at(self.side, self._until_us))
        self._window = None

    def _spans(self, belongs_to: BelongsTo) -> Iterator[Span]:
        told, self._told = self._told, []
        for item in told:
            begin_us = self.site.at(self.side, item.begin_us)
            yield from self._move_to(item.begin_us)
            if isinstance(item, UnitRan):
                yield self._unit(item, begin_us, belongs_to(item))
            else:
                cause = item.cause.name.lower()
                yield self._gap(SpanName.BUBBLE, item.begin_us, item.end_us, {Attribute.CAUSE: cause})
            self._until_us = item.end_us

    def _move_to(self, at_us: int) -> Iterator[Span]:
        """Yield what is over when something begins: idle time, and windows."""
        begin_us = self.site.at(self.side, at_us)
        if self._until_us is not None and self._until_us < at_us:
            yield self._gap(SpanName.IDLE, self._until_us, at_us, {})
        self._began_us = begin_us if self._began_us is None else self._began_us
        window = window_of(begin_us)
        if self._window is not None and self._window != window:
            yield self._root(self._window, begin_us)
        self._window = window

    def _root(self, window: int, until_us: int) -> Span:
        """Return the root of a window: all of it, but for what was before the session or is after `until_us`."""
        begin_us = max(window * WINDOW_US, self._began_us or 0)
        end_us = max(begin_us, min((window + 1) * WINDOW_US, until_us))
        attributes = {Attribute.SIDE: self.side.value, Attribute.SESSION: self.site.session}
        context = timeline_context(self.site.session, self.side, window)
        return Span(
            f"{SpanName.TIMELINE} {self.side.value}", context, None, ORIGINS[self.side], begin_us, end_us, attributes
        )

    def _unit(self, ran: UnitRan, begin_us: int, links: tuple[SpanContext, ...]) -> Span:
        return Span(
            NAMES[ran.stage],
            self.site.unit(self.side, ran),
            self.site.timeline(self.side, ran),
            ORIGINS[self.side],
            begin_us,
            max(begin_us, self.site.at(self.side, ran.end_us)),
            self.site.of_engine(self.side, ran) | _which(ran),
            links,
        )

    def _gap(self, name: str, from_us: int, until_us: int, attributes: dict[str, AttributeValue]) -> Span:
        """Return a span between two times of the engine in which nothing ran."""
        begin_us = self.site.at(self.side, from_us)
        parent = timeline_context(self.site.session, self.side, window_of(begin_us))
        context = parent.child(name, from_us, until_us)
        return Span(name, context, parent, ORIGINS[self.side], begin_us, begin_us + until_us - from_us, attributes)


def _which(ran: UnitRan) -> dict[str, AttributeValue]:
    """Return which chunk or step, or both, a unit belongs to, and which part of it ran."""
    number: dict[str, AttributeValue] = {}
    step = ran.step_part.step
    if ran.chunk is not None:
        number[Attribute.CHUNK] = ran.chunk
    if step is not None:
        number[Attribute.STEP] = step
    in_layers = ran.stage in {Stage.SEGMENT, Stage.STEP, Stage.FUSED_SEGMENT, Stage.BOARDING}
    start, stop = (
        (Attribute.START_LAYER, Attribute.STOP_LAYER) if in_layers else (Attribute.START_ROW, Attribute.STOP_ROW)
    )
    return number | {start: ran.start, stop: ran.stop}
