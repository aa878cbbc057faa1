"""Each unit takes the time of its profile, to a tenth of a millisecond.

The time counts from when the core began the unit, so that choosing and computing it are part of it. The thread sleeps
until the time is over; it never spins. Does not know what a unit computes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import sleep as sleep_s

from edgeweave.clock import Clock
from edgeweave.interleave.effects import CloudRun, EdgeRun, RunFused, RunSegment, RunStep
from edgeweave.sim.profile import Profile
from edgeweave.sim.unit_times import cloud_unit_us, edge_unit_us

_MOST_LATE_US = 200
"""A wake-up later than this says that the machine was busy, not how late it usually is."""
_SHARE_OF_NEWEST = 0.125


class ProfileTime:
    """Holds a unit up until its time is over. `sleep` takes seconds.

    A sleep ends late by what the machine needs to wake up. That is measured and taken off the next one, so that units
    are neither too long nor too short on average.
    """

    def __init__(
        self, profile: Profile, *, is_centralized: bool, clock: Clock, sleep: Callable[[float], None] = sleep_s
    ) -> None:
        self._profile = profile
        self._is_centralized = is_centralized
        self._clock = clock
        self._sleep = sleep
        self._late_us = 0.0

    @contextmanager
    def __call__(self, effect: EdgeRun | CloudRun, begin_us: int) -> Iterator[None]:
        """Run the block as the unit of `effect`. One that fails ends at once."""
        due_us = begin_us + self._unit_us(effect)
        yield
        self._sleep_until(due_us)

    def _unit_us(self, effect: EdgeRun | CloudRun) -> int:
        if isinstance(effect, RunSegment | RunStep | RunFused):
            return cloud_unit_us(self._profile, effect)
        return edge_unit_us(self._profile, effect, is_centralized=self._is_centralized)

    def _sleep_until(self, due_us: int) -> None:
        """Sleep until `due_us`; what is left at a wake-up and is less than half a wake-up's lateness is let go."""
        while (left_us := due_us - self._clock.now_us()) > self._late_us / 2:
            wake_us = due_us - min(self._late_us, left_us)
            self._sleep((wake_us - due_us + left_us) / 1_000_000)
            self._learn(self._clock.now_us() - wake_us)

    def _learn(self, late_us: float) -> None:
        if late_us <= _MOST_LATE_US:
            self._late_us += _SHARE_OF_NEWEST * (late_us - self._late_us)
