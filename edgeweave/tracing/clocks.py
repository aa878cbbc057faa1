"""The clocks of both engines, told in that of the site.

Engines run by clocks of their own, which begin anywhere. This is the one place where the offsets are estimated.
Knows reports, steps and their times. Does not know spans.
"""

from collections import deque
from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side

MEMORY = 64
"""Trips that are remembered each way: the shortest of them met no queue, and clocks hardly drift meanwhile."""


@dataclass(slots=True)
class Clocks:
    """Offsets of one session, in microseconds.

    The edge is beside the scheduler: its report came without delay when it came soonest, so the least difference
    between arrival and its own clock is the offset. The cloud is far: a step that meets no queue takes as long up as
    down, so what differs between the two shortest trips is twice the offset between edge and cloud. Until a step has
    gone round, half of the round trip that the lanes measured is taken for the way of its report.
    """

    rtt_us: int = 0
    _reports: dict[Side, deque[int]] = field(default_factory=lambda: {side: deque(maxlen=MEMORY) for side in Side})
    _up: deque[int] = field(default_factory=lambda: deque(maxlen=MEMORY))
    _down: deque[int] = field(default_factory=lambda: deque(maxlen=MEMORY))
    _offsets: dict[Side, int | None] = field(default_factory=dict)

    def take_report(self, side: Side, *, clock_us: int, now_us: int) -> None:
        """A report that an engine closed at `clock_us` of its clock is here now."""
        self._reports[side].append(now_us - clock_us)
        self._offsets.clear()

    def take_trip(self, *, sent_us: int, arrived_us: int, answered_us: int, returned_us: int) -> None:
        """A step left the edge, was in the cloud between its arrival and its answer, and came back."""
        self._up.append(arrived_us - sent_us)
        self._down.append(returned_us - answered_us)
        self._offsets.clear()

    def offset_us(self, side: Side) -> int | None:
        """Return what to add to a time of that engine; `None` before its first report."""
        if side not in self._offsets:  # asked for each end of each span, and known anew with each report and trip
            self._offsets[side] = self._offset_us(side)
        return self._offsets[side]

    def _offset_us(self, side: Side) -> int | None:
        if side is Side.CLOUD and self._up and self._reports[Side.EDGE]:
            cloud_ahead_us = (min(self._up) - min(self._down)) // 2
            return min(self._reports[Side.EDGE]) - cloud_ahead_us
        reports = self._reports[side]
        if not reports:
            return None
        return min(reports) - (self.rtt_us // 2 if side is Side.CLOUD else 0)

    def site_us(self, side: Side, at_us: int) -> int:
        """Return a time of an engine in the clock of the scheduler; unchanged before its first report."""
        return at_us + (self.offset_us(side) or 0)
