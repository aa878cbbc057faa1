"""How fast units come out of the link at this end, so that the other end can be told.

Knows frames, bytes and times of arrival. Does not know what the other end does about it.
"""

from collections import deque

from edgeweave.wire.frames import Arrived, Frame

FEWEST_BYTES = 4 << 20
"""Shorter stretches say more about timers than about the path."""


class Arrivals:
    """Measures one unit after the other, by the fastest stretch of half its bytes.

    Not by all of it: a host that was busy for a moment makes a unit late, and the path is no slower for that. A host
    that reads late and then catches up makes a stretch look faster than the path; that errs towards sending unpaced.
    """

    def __init__(self) -> None:
        self._unit: int | None = None
        self._came: deque[tuple[int, int]] = deque()
        """Time of each frame of the stretch, and how many bytes of the unit had come by then."""
        self._stretch_bytes = FEWEST_BYTES
        self._bytes_per_s = 0
        self._latest: Arrived | None = None

    def add(self, frame: Frame, *, now_us: int) -> None:
        """Count a frame that comes now."""
        if frame.row_start == 0:
            self._begin(frame)
        if frame.unit != self._unit:
            return
        before = self._came[-1][1] if self._came else 0
        self._came.append((now_us, before + len(frame.payload)))
        self._measure()
        if frame.row_stop == frame.num_rows and self._bytes_per_s:
            self._latest = Arrived(frame.unit, self._bytes_per_s)

    def take(self) -> Arrived | None:
        """Return how the latest unit came, once."""
        latest, self._latest = self._latest, None
        return latest

    def _begin(self, frame: Frame) -> None:
        self._unit = frame.unit
        self._came.clear()
        unit_bytes = len(frame.payload) * frame.num_rows // max(1, frame.row_stop)
        self._stretch_bytes = max(FEWEST_BYTES, unit_bytes // 2)
        self._bytes_per_s = 0

    def _measure(self) -> None:
        """Look at the shortest stretch that ends with the frame that came last."""
        now_us, num_bytes = self._came[-1]
        while len(self._came) > 1 and num_bytes - self._came[1][1] >= self._stretch_bytes:
            self._came.popleft()
        begin_us, before = self._came[0]
        if num_bytes - before >= self._stretch_bytes and now_us > begin_us:
            self._bytes_per_s = max(self._bytes_per_s, (num_bytes - before) * 1_000_000 // (now_us - begin_us))
