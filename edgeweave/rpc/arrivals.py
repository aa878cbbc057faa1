"""How fast units come out of the link at this end, so that the other end can be told.

Knows frames, bytes and times of arrival. Does not know what the other end does about it.
"""

from edgeweave.wire.frames import Arrived, Frame

FEWEST_BYTES = 2 << 20
"""Less says more about timers than about the path."""


class Arrivals:
    """Measures one unit after the other, from its first frame, which may have waited for anything, to its last.

    A host that is busy for a moment makes a unit late: one unit says little.
    """

    def __init__(self) -> None:
        self._unit: int | None = None
        self._begin_us = 0
        self._num_bytes = 0
        self._latest: Arrived | None = None

    def add(self, frame: Frame, *, now_us: int) -> None:
        """Count a frame that comes now."""
        if frame.row_start == 0:
            self._unit, self._begin_us, self._num_bytes = frame.unit, now_us, 0
        elif frame.unit == self._unit:
            self._num_bytes += len(frame.payload)
            if frame.row_stop == frame.num_rows:
                self._end(frame.unit, took_us=now_us - self._begin_us)

    def take(self) -> Arrived | None:
        """Return how the latest unit came, once."""
        latest, self._latest = self._latest, None
        return latest

    def _end(self, unit: int, *, took_us: int) -> None:
        if self._num_bytes >= FEWEST_BYTES and took_us > 0:
            self._latest = Arrived(unit, self._num_bytes * 1_000_000 // took_us)
