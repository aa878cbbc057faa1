"""Virtual time: a queue of what happens when. Same time, same order as it was planned."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count


@dataclass(slots=True)
class Events:
    """What is to happen, by time in microseconds."""

    now_us: int = 0
    _heap: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    _order: "count[int]" = field(default_factory=count)

    def at(self, time_us: int, happen: Callable[[], None]) -> None:
        """Let `happen` be called at `time_us`, or now if that is past."""
        heapq.heappush(self._heap, (max(time_us, self.now_us), next(self._order), happen))

    def after(self, delay_us: int, happen: Callable[[], None]) -> None:
        """Let `happen` be called `delay_us` from now."""
        self.at(self.now_us + delay_us, happen)

    def run(self, *, until_us: int | None = None) -> None:
        """Let everything happen, in order of time, at most until `until_us`."""
        while self._heap and (until_us is None or self._heap[0][0] <= until_us):
            self.now_us, _, happen = heapq.heappop(self._heap)
            happen()
