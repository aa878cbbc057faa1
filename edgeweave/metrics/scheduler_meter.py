"""Counts what the scheduler hears and does: the meters of requests, engines, link and sessions.

Watches the scheduler's core: events and effects. Changes nothing, and looks for nothing that costs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import ChunkDone, OpenSequence, StepDone, Timeline
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import (
    Cancel,
    Connected,
    Disconnected,
    Emit,
    FromEngine,
    Refuse,
    SchedulerEffect,
    SchedulerEvent,
    ToEngine,
)
from edgeweave.interleave.session import Session
from edgeweave.metrics.engine_meter import EngineMeter
from edgeweave.metrics.histogram import Histogram
from edgeweave.metrics.mesh_metrics import LinkMetric, TimeMetric
from edgeweave.metrics.request_meter import RequestMeter


@dataclass(slots=True)
class SchedulerMeter:
    """All that is counted over the life of one scheduler. Engines are known once a session had them."""

    core: SchedulerCore
    requests: RequestMeter = field(default_factory=RequestMeter)
    engines: dict[Side, EngineMeter] = field(default_factory=dict)
    chunk_away: Histogram = field(default_factory=lambda: Histogram(LinkMetric.CHUNK_AWAY))
    step_away: Histogram = field(default_factory=lambda: Histogram(LinkMetric.STEP_AWAY))
    away_us: int = 0
    num_sessions: int = 0
    _session: Session | None = None
    _departures_before: int = 0

    @property
    def num_departures(self) -> int:
        """Units of all sessions that an engine chose by other rules than the replay."""
        return self._departures_before + (self._session.replay.num_departures if self._session is not None else 0)

    def saw(self, event: SchedulerEvent | None, effects: Iterable[SchedulerEffect], /, *, now_us: int) -> None:
        """Count an event that the core took, `None` where it looked at the time, and what it answered."""
        self._take(event)
        requests = self.requests
        for effect in effects:
            match effect:
                case Emit():
                    requests.emit(effect.request_id, now_us=now_us)
                    if effect.finish is not None:
                        requests.finish(effect.request_id, effect.finish, num_output=effect.index + 1)
                case Refuse():
                    requests.refuse(effect.request_id, effect.error)
                case ToEngine(task=OpenSequence(sequence=number)):
                    self._admit(number, now_us)

    def _take(self, event: SchedulerEvent | None) -> None:
        match event:
            case FromEngine():
                self._hear(event)
            case Request():
                self.requests.submit(event)
            case Cancel():
                self.requests.abort(event.request_id)
            case Connected() | Disconnected():
                self._change(self.core.session)

    def _admit(self, number: int, now_us: int) -> None:
        request = self.core.request_of(number)
        if request is not None:
            self.requests.admit(request.request_id, now_us=now_us)

    def _hear(self, event: FromEngine) -> None:
        match event.message:
            case Timeline():
                if event.side in self.engines:
                    self.engines[event.side].take(event.message)
            case StepDone():
                self.step_away.observe(event.message.away_us)
                self.away_us += event.message.away_us + event.message.turnaround_us
            case ChunkDone():
                self.chunk_away.observe(event.message.away_us)
                self.away_us += event.message.away_us

    def _change(self, session: Session | None) -> None:
        self._departures_before, self._session = self.num_departures, session
        if session is not None:
            self.num_sessions += 1
            for side in session.accounts.sides:
                self.engines.setdefault(side, EngineMeter(TimeMetric.UNIT_TIME, TimeMetric.STEP_ROWS))
