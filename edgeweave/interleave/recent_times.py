"""Times of late, as quantiles: what users meet now, and not what they met since the start.

Knows microseconds that it is told. Reads no clock, and does not know what the times are of.
"""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field

WINDOW_US = 60_000_000
"""Times older than a minute do not count."""
MOST_TIMES = 4096
"""Where a minute has more, the newest count."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """`num_times` times in microseconds: half of them, 90 % and 99 % of them are at most so long."""

    num_times: int
    p50_us: int
    p90_us: int
    p99_us: int


@dataclass(slots=True)
class RecentTimes:
    """The times of the last `window_us`, and no more than the newest `most_times`. Memory is bounded by that."""

    window_us: int = WINDOW_US
    most_times: int = MOST_TIMES
    _told: deque[tuple[int, int]] = field(default_factory=deque)
    _sorted: list[int] = field(default_factory=list)

    def add(self, time_us: int, *, now_us: int) -> None:
        """Take a time that is known since now; costs a search and a short copy."""
        self._forget(now_us)
        if len(self._told) == self.most_times:
            self._forget_oldest()
        self._told.append((now_us, time_us))
        insort(self._sorted, time_us)

    def quantiles(self, *, now_us: int) -> Quantiles | None:
        """Return the quantiles of what counts now; `None` where nothing does."""
        self._forget(now_us)
        if not self._sorted:
            return None
        return Quantiles(len(self._sorted), self._quantile(50), self._quantile(90), self._quantile(99))

    def _quantile(self, percent: int) -> int:
        """Return the shortest time that `percent` of all times do not exceed."""
        return self._sorted[-(-percent * len(self._sorted) // 100) - 1]

    def _forget(self, now_us: int) -> None:
        while self._told and self._told[0][0] <= now_us - self.window_us:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, time_us = self._told.popleft()
        del self._sorted[bisect_left(self._sorted, time_us)]
