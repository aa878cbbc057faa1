"""Watches the scheduler's core and lets spans be made of what happens.

Knows events and effects of the core. Beside it nothing has to be called but `watch`, for each request whose spans are
wanted. Decides nothing, and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Chunk, ChunkDone, OpenSequence, StepDone, Timeline, UnitFailed
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import (
    Connected,
    Disconnected,
    Emit,
    FromEngine,
    Refuse,
    SchedulerEffect,
    SchedulerEvent,
    ToEngine,
)
from edgeweave.tracing.clocks import Clocks
from edgeweave.tracing.site import Site
from edgeweave.tracing.span import SpanContext
from edgeweave.tracing.tracer import SessionTracer, Sinks, TracedRequest


@dataclass(slots=True)
class Recorder:
    """The spans of all sessions of one scheduler, one after the other.

    `wall_us` is the wall clock where the scheduler's clock is 0; `sinks` get each span once.
    """

    core: SchedulerCore
    sinks: Sinks
    wall_us: int = 0
    _session: SessionTracer | None = None
    _watched: dict[str, TracedRequest] = field(default_factory=dict)

    def watch(self, request_id: str, root: SpanContext, *, arrived_us: int) -> TracedRequest:
        """Make spans for a request below `root`, from now on; what is returned counts its steps."""
        traced = self._watched[request_id] = TracedRequest(root, arrived_us)
        return traced

    def saw(self, event: SchedulerEvent | None, effects: Sequence[SchedulerEffect], *, now_us: int) -> None:
        """The core took `event`, or looked at the time, and answered with `effects`."""
        match event:
            case Connected():
                self._end_session()
                self._session = SessionTracer(self._site(event), self.sinks)
            case Disconnected():
                self._end_session()
            case FromEngine() if self._session is not None:
                _tell(self._session, event, now_us)
        for effect in effects:
            self._saw_effect(effect, now_us)

    def _saw_effect(self, effect: SchedulerEffect, now_us: int) -> None:
        match effect:
            case ToEngine(Side.EDGE, OpenSequence() as task):
                self._open(task.sequence)
            case ToEngine(Side.EDGE, Chunk() as chunk) if self._session is not None:
                self._session.issue(chunk, now_us=now_us)
            case Emit(finish=finish) if finish is not None:
                self.forget(effect.request_id)
            case Refuse():
                self.forget(effect.request_id)

    def forget(self, request_id: str) -> None:
        """A request is over."""
        traced = self._watched.pop(request_id, None)
        if traced is not None and self._session is not None:
            self._session.leave(traced)

    def close(self) -> None:
        """Tell what is known of what is open; the scheduler stops."""
        self._end_session()

    def _open(self, sequence: int) -> None:
        """A sequence was opened: of which request, the core knows."""
        request = self.core.request_of(sequence)
        traced = self._watched.get(request.request_id) if request is not None else None
        if traced is not None and self._session is not None:
            self._session.open(sequence, traced)

    def _site(self, event: Connected) -> Site:
        rtt_us = event.lanes.rtt_us if event.lanes is not None else 0
        return Site(
            event.session,
            self.wall_us,
            token_bytes=event.edge.token_bytes,
            holds_body=event.cloud is None,
            clocks=Clocks(rtt_us),
        )

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.end()
            self._session = None


def _tell(session: SessionTracer, event: FromEngine, now_us: int) -> None:
    match event.message:
        case Timeline() as timeline:
            session.report(event.side, timeline, now_us=now_us)
        case ChunkDone() as done:
            session.chunk_done(done, now_us=now_us)
        case StepDone() as done:
            session.step_done(done, now_us=now_us)
        case UnitFailed() as failed:
            session.failed(failed, now_us=now_us)
