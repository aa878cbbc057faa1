"""What turns numbers of one session into spans: its clocks, its number, the size of a hidden state.

Knows how a time of an engine becomes one of the wall, and how a unit is named so that spans can link to it. Does not
know what a chunk or a step consists of.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.clocks import Clocks
from edgeweave.tracing.span import AttributeValue, Origin, Span, SpanContext

ORIGINS = {Side.EDGE: Origin.EDGE, Side.CLOUD: Origin.CLOUD}


@dataclass(slots=True)
class Site:
    """One session as its spans see it. `wall_us` is the wall clock where the scheduler's clock is 0.

    `token_bytes` is one token's hidden state; `holds_body` says that the edge holds all layers.
    """

    session: int
    wall_us: int
    token_bytes: int = 0
    holds_body: bool = False
    clocks: Clocks = field(default_factory=Clocks)

    def at(self, side: Side, at_us: int) -> int:
        """Return a time of an engine by the wall clock."""
        return self.wall_us + self.clocks.site_us(side, at_us)

    def here(self, at_us: int) -> int:
        """Return a time of the scheduler by the wall clock."""
        return self.wall_us + at_us

    def unit(self, side: Side, ran: UnitRan, *, window: int) -> SpanContext:
        """Return the context of a unit in the timeline of its engine; `window` is that in which it began."""
        which = ("chunk", ran.chunk) if ran.chunk is not None else ("step", ran.step, ran.next_step)
        return timeline_context(self.session, side, window).child(ran.stage.name, *which, ran.start, ran.begin_us)

    def of_engine(self, side: Side, ran: UnitRan) -> dict[str, AttributeValue]:
        """Return the attributes of a unit that an engine ran."""
        skipped: dict[str, AttributeValue] = {Attribute.NUM_SKIPPED_ROWS: ran.num_skipped} if ran.num_skipped else {}
        return skipped | {
            Attribute.STAGE: ran.stage.name.lower(),
            Attribute.PLAN: ran.plan,
            Attribute.NUM_ROWS: ran.num_rows,
            Attribute.NUM_TOKENS: ran.num_tokens,
            Attribute.CLOCK_OFFSET_US: self.clocks.offset_us(side) or 0,
        }

    def hop(self, parent: SpanContext, *, lane: Lane, is_up: bool, begin_us: int, end_us: int, num_tokens: int) -> Span:
        """Return one crossing of the link, times by the wall clock.

        Two clocks took them: where they disagree by more than the crossing took, it took no time.
        """
        direction = "up" if is_up else "down"
        return Span(
            SpanName.HOP,
            parent.child("hop", direction),
            parent,
            Origin.LINK,
            begin_us,
            max(begin_us, end_us),
            {
                Attribute.LANE: lane.name.lower(),
                Attribute.DIRECTION: direction,
                Attribute.PAYLOAD_BYTES: num_tokens * self.token_bytes,
            },
        )


def timeline_context(session: int, side: Side, window: int) -> SpanContext:
    """Return the context of the root of an engine's timeline in one window."""
    return SpanContext.of("timeline", session, side.value, window)
