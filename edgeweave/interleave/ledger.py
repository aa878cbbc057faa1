"""Where the time of one engine went. Busy, idle and the bubbles of all causes add up to it without a gap.

Knows the definitions: busy is a unit that runs, idle is no open sequence, and all else is a bubble, which gets its
cause at its end. Does not know what the units are; the core says what ended a bubble.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.nouns import Bubble, BubbleCause, Timeline, UnitRan


@dataclass(frozen=True, slots=True)
class Ending:
    """What ended a bubble.

    `cause` is that of a clean wait. `announced_us` is when the scheduler announced the work, where the time before
    it is the scheduler's. `clean_arrival_us` is when the first byte would have been here after a clean trip, where
    the time after it is the link's. `grace_from_us` is when the engine began to wait by choice.
    """

    cause: BubbleCause
    announced_us: int | None = None
    clean_arrival_us: int | None = None
    grace_from_us: int | None = None


def split_bubble(begin_us: int, end_us: int, ending: Ending) -> tuple[Bubble, ...]:
    """Cut `[begin_us, end_us)` into bubbles of one cause each, in order; empty ones are left out."""
    grace = _within(ending.grace_from_us, begin_us, end_us, otherwise=end_us)
    announced = _within(ending.announced_us, begin_us, grace, otherwise=begin_us)
    arrival = _within(ending.clean_arrival_us, announced, grace, otherwise=grace)
    spans = (
        (begin_us, announced, BubbleCause.AWAIT_TASK),
        (announced, arrival, ending.cause),
        (arrival, grace, BubbleCause.LINK),
        (grace, end_us, BubbleCause.GRACE),
    )
    return tuple([Bubble(start, stop, cause) for start, stop, cause in spans if start < stop])


def _within(at_us: int | None, low_us: int, high_us: int, *, otherwise: int) -> int:
    return otherwise if at_us is None else min(max(at_us, low_us), high_us)


@dataclass(slots=True)
class Ledger:
    """Accounts of one engine, in microseconds of its clock. One state lasts from `since_us` until the next event."""

    since_us: int
    _is_open: bool = False
    _is_busy: bool = False
    _idle_us: int = 0
    _ran: list[UnitRan] = field(default_factory=list)
    _bubbles: list[Bubble] = field(default_factory=list)

    def set_open(self, *, is_open: bool, now_us: int) -> None:
        """Say whether any sequence is open. Closing ends a bubble that nothing else ended: it awaited a task."""
        if is_open == self._is_open:
            return
        if not self._is_busy:
            self._leave(now_us, Ending(BubbleCause.AWAIT_TASK))
        self._is_open = is_open

    def begin_unit(self, *, now_us: int, ending: Ending) -> None:
        """A unit begins; a bubble before it ended so."""
        self._leave(now_us, ending)
        self._is_busy = True

    def end_unit(self, *, now_us: int, ran: UnitRan) -> None:
        """The unit ended."""
        self.since_us = now_us
        self._is_busy = False
        self._ran.append(ran)

    def lose(self, *, now_us: int) -> None:
        """The session broke: what was waited for is lost."""
        if not self._is_busy:
            self._leave(now_us, Ending(BubbleCause.LOST))
        self._is_open = False

    def take(self, *, now_us: int) -> Timeline:
        """Return what ended since the last call. Idle time is counted up to now; open bubbles and units are not."""
        if not self._is_open and not self._is_busy:
            self._leave(now_us, Ending(BubbleCause.AWAIT_TASK))
        timeline = Timeline(tuple(self._ran), tuple(self._bubbles), self._idle_us, now_us)
        self._ran, self._bubbles, self._idle_us = [], [], 0
        return timeline

    def _leave(self, now_us: int, ending: Ending) -> None:
        if self._is_open:
            self._bubbles += split_bubble(self.since_us, now_us, ending)
        else:
            self._idle_us += now_us - self.since_us
        self.since_us = now_us
