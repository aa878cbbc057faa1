"""What turns numbers of one session into spans: its clocks, its number, the size of a hidden state.

Knows how a time of an engine becomes one of the wall, and how a unit is named so that spans can link to it. Does not
know what a chunk or a step consists of.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Lane, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.clocks import Clocks
from edgeweave.tracing.span import AttributeValue, Origin, SpanContext, SpanDraft
from edgeweave.tracing.windows import window_of

NUM_REMEMBERED = 4096
"""Units of each side of which something is remembered: more than engines run between two reports."""
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
    _windows: dict[tuple[Side, int], int] = field(default_factory=dict)

    def at(self, side: Side, at_us: int) -> int:
        """Return a time of an engine by the wall clock."""
        return self.wall_us + self.clocks.site_us(side, at_us)

    def here(self, at_us: int) -> int:
        """Return a time of the scheduler by the wall clock."""
        return self.wall_us + at_us

    def window(self, side: Side, ran: UnitRan) -> int:
        """Return the window in which a unit began: the same each time, whatever is learnt of its clock meanwhile."""
        key = (side, ran.begin_us)
        if key not in self._windows:
            self._windows[key] = window_of(self.at(side, ran.begin_us))
            if len(self._windows) > NUM_REMEMBERED:
                del self._windows[next(iter(self._windows))]
        return self._windows[key]

    def timeline(self, side: Side, ran: UnitRan) -> SpanContext:
        """Return the context of the timeline that a unit is in."""
        return timeline_context(self.session, side, self.window(side, ran))

    def unit(self, side: Side, ran: UnitRan) -> SpanContext:
        """Return the context of a unit in the timeline of its engine."""
        which = ("chunk", ran.chunk) if ran.chunk is not None else ("step", ran.step, ran.next_step)
        return self.timeline(side, ran).child(ran.stage.name, *which, ran.start, ran.begin_us)

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

    def part(self, name: str, side: Side, ran: UnitRan, *words: object, begin_us: int, end_us: int) -> SpanDraft:
        """Return what of a unit lies between two times of its engine, told apart by `words`."""
        begin_us, end_us = self.at(side, begin_us), self.at(side, end_us)
        links = (self.unit(side, ran),)
        return SpanDraft(name, ORIGINS[side], begin_us, end_us, self.of_engine(side, ran), links, words)

    def hop(self, lane: Lane, *, is_up: bool, left_us: int, here_us: int, num_tokens: int) -> SpanDraft:
        """Return one crossing of the link, which left by one engine's clock and came by the other's.

        Where the two disagree by more than the crossing took, it took no time.
        """
        near, far = (Side.EDGE, Side.CLOUD) if is_up else (Side.CLOUD, Side.EDGE)
        direction, begin_us = "up" if is_up else "down", self.at(near, left_us)
        end_us = max(begin_us, self.at(far, here_us))
        attributes: dict[str, AttributeValue] = {
            Attribute.LANE: lane.name.lower(),
            Attribute.DIRECTION: direction,
            Attribute.PAYLOAD_BYTES: num_tokens * self.token_bytes,
        }
        return SpanDraft(SpanName.HOP, Origin.LINK, begin_us, end_us, attributes, words=(direction,))

    def hops(
        self,
        lane: Lane,
        *,
        up: tuple[int | None, int | None],
        down: tuple[int | None, int | None],
        num_tokens: int,
    ) -> list[SpanDraft]:
        """Return the ways up and down of which both ends are known: when each left, and when all of it was here."""
        ways = ((True, *up), (False, *down))
        return [
            self.hop(lane, is_up=is_up, left_us=left_us, here_us=here_us, num_tokens=num_tokens)
            for is_up, left_us, here_us in ways
            if left_us is not None and here_us is not None
        ]


@lru_cache(maxsize=64)
def timeline_context(session: int, side: Side, window: int) -> SpanContext:
    """Return the context of the root of an engine's timeline in one window."""
    return SpanContext.of("timeline", session, side.value, window)
