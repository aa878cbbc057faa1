"""The one timer of the scheduler: it is never late, however deadlines move."""

import asyncio
from typing import Any, cast

import pytest

from edgeweave.clock import MonotonicClock
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave_scheduler.driver import Driver

SOON_US, LATE_US = 20_000, 10_000_000


class StubCore:
    """A core that has something to end at `due_us`, and says when it was asked."""

    is_idle = True

    def __init__(self) -> None:
        self.due_us: int | None = None
        self.polled = asyncio.Event()

    def on(self, _event: Any, *, now_us: int) -> list[Any]:
        """Take anything."""
        del now_us
        return []

    def poll(self, *, now_us: int) -> list[Any]:
        """End what is due."""
        self.polled.set()
        if self.due_us is not None and now_us >= self.due_us:
            self.due_us = None
        return []

    def wake_us(self) -> int | None:
        """Return when something is due."""
        return self.due_us


@pytest.mark.parametrize(("first_us", "then_us"), [(SOON_US, LATE_US), (LATE_US, SOON_US), (SOON_US, SOON_US)])
async def test_the_sooner_of_two_deadlines_is_kept(first_us: int, then_us: int) -> None:
    """A timer that is sooner stays, and one that is later is replaced; what it finds too early is left for the next."""
    core, clock = StubCore(), MonotonicClock()
    driver = Driver(cast("SchedulerCore", core), clock=clock)
    begin_us = clock.now_us()
    for due_us in (first_us, then_us):
        core.due_us = begin_us + due_us
        driver.feed(cast("Any", None))
    await asyncio.wait_for(core.polled.wait(), 5)
    assert (core.due_us is None) == (then_us == SOON_US)
