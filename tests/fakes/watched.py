"""The scheduler's driver and keeper, watched: a test waits for a state of theirs instead of for time."""

import asyncio
from collections import Counter
from collections.abc import Callable

from edgeweave.clock import Clock
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Timeline
from edgeweave.interleave.requests import Attempt, Request
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import FromEngine, SchedulerEvent
from edgeweave.metrics import SchedulerMeter
from edgeweave_scheduler.driver import Answer, Driver

WAITING = "waiting"
LONGEST_WAIT_S = 20.0


class Notice:
    """Wakes whoever waits for a condition, whenever something happened."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def tell(self) -> None:
        """Something happened: wake those whose condition holds now."""
        for condition, woken in self._waiting:
            if not woken.done() and condition():
                woken.set_result(None)
        self._waiting = [(condition, woken) for condition, woken in self._waiting if not woken.done()]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition` has held; TimeoutError if that takes too long."""
        if condition():
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, woken))
        async with asyncio.timeout(LONGEST_WAIT_S):
            await woken


class WatchedDriver(Driver):
    """A driver that keeps the timelines of the engines, and counts in which state requests were aborted."""

    def __init__(self, core: SchedulerCore, *, clock: Clock, notice: Notice) -> None:
        self.meter = SchedulerMeter(core)
        super().__init__(core, clock=clock, watchers=[self.meter.saw])
        self.timelines: dict[Side, list[Timeline]] = {side: [] for side in Side}
        self.aborts: Counter[str] = Counter()
        self.num_opened = 0
        self._notice = notice

    def open(self, request: Request) -> asyncio.Queue[Answer]:
        self.num_opened += 1
        return super().open(request)

    def feed(self, event: SchedulerEvent) -> None:
        if isinstance(event, FromEngine) and isinstance(event.message, Timeline):
            self.timelines[event.side].append(event.message)
        super().feed(event)
        self._notice.tell()

    def close(self, request_id: str, answers: "asyncio.Queue[Answer]") -> None:
        if request_id in self.core.requests:
            self.aborts.update(self.states(request_id))
        super().close(request_id, answers)

    def states(self, request_id: str) -> set[str]:
        """Return where a request is: one that was preempted waits while its sequence is being released."""
        request = self.core.requests.get(request_id)
        session = self.core.session
        attempts = session.sequences.values() if session is not None else ()
        states = {attempt.state.value for attempt in attempts if attempt.request.request_id == request_id}
        return states | ({WAITING} if request is not None and request in self.core.waiting else set())

    def is_in(self, request_id: str, state: str) -> bool:
        """Whether a request is in `state`: "waiting", or the value of an `Attempt`."""
        return state in self.states(request_id)


STATES = (WAITING, *(attempt.value for attempt in Attempt))
