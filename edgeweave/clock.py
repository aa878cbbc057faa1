"""Time as a value that is passed in.

Knows the one unit that cores and engines use: whole microseconds of a clock that never goes back.
Does not know wall-clock dates; logs take those from the logging library.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Something that tells the time in microseconds."""

    def now_us(self) -> int:
        """Return microseconds since an arbitrary start; never less than the call before."""
        ...


class MonotonicClock:
    """The clock of this machine."""

    def now_us(self) -> int:
        """Return microseconds of the monotonic clock."""
        return time.monotonic_ns() // 1000


class ManualClock:
    """A clock that moves only when it is told to: for tests and for the simulator."""

    def __init__(self, *, start_us: int = 0) -> None:
        self._now_us = start_us

    def now_us(self) -> int:
        """Return the time that was set last."""
        return self._now_us

    def advance(self, delta_us: int) -> None:
        """Move forward by `delta_us`."""
        if delta_us < 0:
            raise ValueError(f"a clock cannot go back by {-delta_us} us")
        self._now_us += delta_us
