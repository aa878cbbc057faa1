"""Drives the scheduler's core on the event loop: events in, effects out, one timer.

Knows who waits for answers and where the task streams are. Decides nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from edgeweave.clock import Clock
from edgeweave.errors import EdgeweaveError, InvalidRequestError, SessionLostError
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.plan_change import PlanChange
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import (
    Cancel,
    Connected,
    Disconnected,
    Emit,
    EndSession,
    Refuse,
    Replanned,
    SchedulerEffect,
    SchedulerEvent,
    ToEngine,
    Watcher,
)
from edgeweave_scheduler.task_stream import TaskStream

_log = structlog.get_logger(__name__)

Answer = Emit | EdgeweaveError


class Driver:
    """Owns the core. All methods belong to the event loop."""

    def __init__(self, core: SchedulerCore, *, clock: Clock, watchers: Sequence[Watcher] = ()) -> None:
        self.core = core
        self.clock = clock
        self._watchers = watchers
        self._answers: dict[str, asyncio.Queue[Answer]] = {}
        self._streams: Mapping[Side, TaskStream] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = 0
        self._idle = asyncio.Event()

    def open(self, request: Request) -> asyncio.Queue[Answer]:
        """Submit a request; its answers come through the queue, the last a finish or an error.

        Raises:
            InvalidRequestError: another request has this id now.
        """
        if request.request_id in self.core.requests:
            raise InvalidRequestError(f"request id {request.request_id!r} is in use; choose another")
        answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._answers[request.request_id] = answers
        self.feed(request)
        return answers

    def close(self, request_id: str, answers: "asyncio.Queue[Answer]") -> None:
        """The client that got `answers` is gone; abort its request if it still runs. The id may be another's by now."""
        if self._answers.get(request_id) is answers:
            del self._answers[request_id]
            self.feed(Cancel(request_id))

    def connect(self, event: Connected, streams: Mapping[Side, TaskStream]) -> None:
        """A session serves over these streams."""
        self._streams = streams
        self.feed(event)

    def disconnect(self, reason: str) -> None:
        """The session is over."""
        self._streams = {}
        self.feed(Disconnected(reason))

    def feed(self, event: SchedulerEvent) -> None:
        """Give the core an event and carry out what follows."""
        now_us = self.clock.now_us()
        self._carry_out(event, self.core.on(event, now_us=now_us), now_us)

    def answer(self, request_id: str, answer: Answer, *, is_last: bool) -> None:
        """Give the client of a request a token, or the reason why there is none.

        The stream of the request yields it to the gateway, which makes text of it: the client has its token.
        """
        answers = self._answers.get(request_id)
        if answers is not None:
            answers.put_nowait(answer)
        if is_last:
            self._answers.pop(request_id, None)

    async def idle(self) -> None:
        """Return when no request is open and no sequence holds blocks."""
        while not self.core.is_idle:
            self._idle.clear()
            await self._idle.wait()

    def _tick(self) -> None:
        self._timer = None
        now_us = self.clock.now_us()
        self._carry_out(None, self.core.poll(now_us=now_us), now_us)

    def _carry_out(self, event: SchedulerEvent | None, effects: list[SchedulerEffect], now_us: int) -> None:
        for watcher in self._watchers:
            watcher(event, effects, now_us=now_us)
        for effect in effects:
            match effect:
                case ToEngine():
                    self._send(effect)
                case Emit():
                    self.answer(effect.request_id, effect, is_last=effect.finish is not None)
                case Refuse():
                    self.answer(effect.request_id, effect.error, is_last=True)
                case EndSession():
                    self._end_session(effect.reason)
                case Replanned():
                    _log_change(effect.change)
        self._set_timer()
        if self.core.is_idle:
            self._idle.set()

    def _send(self, effect: ToEngine) -> None:
        stream = self._streams.get(effect.side)
        if stream is not None:
            stream.send(effect.task)

    def _end_session(self, reason: str) -> None:
        _log.error("session_must_end", reason=reason)
        for stream in self._streams.values():
            stream.end(SessionLostError(reason))

    def _set_timer(self) -> None:
        """Wake up when the core has something to end.

        A timer that is sooner stays, since deadlines move on all the time: it may find nothing, and sets the next.
        """
        wake_us = self.core.wake_us()
        if wake_us is None or (self._timer is not None and self._timer_us <= wake_us):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, wake_us - self.clock.now_us()) / 1_000_000
        self._timer, self._timer_us = asyncio.get_running_loop().call_later(delay_s, self._tick), wake_us


def _log_change(change: PlanChange) -> None:
    plan = change.plan
    _log.info(
        "plan_changed",
        plan=plan.plan,
        kind=plan.kind.name.lower(),
        max_prefills=plan.max_prefills,
        max_steps=plan.max_steps,
        fill_to_rows=plan.fill_to_rows,
        fill_row_us=plan.fill_row_us,
        min_segment_us=plan.min_segment_us,
        may_fuse=plan.may_fuse,
        fuse_after_layers=plan.fuse_after_layers,
        decode_return_us=plan.decode_return_us,
        predicted_rows_per_s=round(change.rows_per_s, 1),
        predicted_gain=round(change.gain, 3),
    )
