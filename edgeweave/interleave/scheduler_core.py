"""The core of the scheduler: admission, chunks, KV accounts, preemption, plans.

Knows requests, sequences, reservations and what is in flight. Tells edge and cloud what to do and waits for neither.
Does not know token text, tensors, streams or the order of work inside an engine. One core outlives many sessions.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field

from edgeweave.errors import (
    DeadlineError,
    EdgeweaveError,
    InvalidRequestError,
    ProtocolError,
    SessionLostError,
    UnavailableError,
    UnitFailedError,
)
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.adaptive import Goal
from edgeweave.interleave.batching import Draft, Prefilling, Waiting, form_chunk
from edgeweave.interleave.choices import Issue, StageView, choose_stage
from edgeweave.interleave.forecast import Queue
from edgeweave.interleave.growth import Extension, next_growth
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.mix import Mix
from edgeweave.interleave.nouns import (
    ChunkDone,
    ExtendSequence,
    Plan,
    Released,
    ReleaseSequences,
    Row,
    Sample,
    Stage,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.interleave.planner import Planner
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.refusal import refusal_of
from edgeweave.interleave.request_totals import RequestEnd, RequestTotals
from edgeweave.interleave.requests import Request, SchedulerSequence
from edgeweave.interleave.scheduler_events import (
    Cancel,
    Connected,
    Disconnected,
    Emit,
    EndSession,
    FromEngine,
    Refuse,
    Replanned,
    SchedulerEffect,
    SchedulerEvent,
    StopAdmission,
    ToEngine,
)
from edgeweave.interleave.session import Session

CLOUD_STAGES = (Stage.SEGMENT, Stage.STEP)


@dataclass(slots=True)
class SchedulerCore:
    """Decides for the whole mesh. Times are microseconds of the scheduler's clock."""

    limits: Limits
    wanted: InitVar[PlanRequest]
    max_grace_us: InitVar[int]
    goal: InitVar[Goal | None] = None
    planner: Planner = field(init=False)
    requests: dict[str, Request] = field(default_factory=dict)
    waiting: deque[Request] = field(default_factory=deque)
    session: Session | None = None
    down_reason: str = "no session yet"
    draining_reason: str | None = None
    num_preemptions: int = 0
    num_output_tokens: int = 0
    request_totals: RequestTotals = field(default_factory=RequestTotals)
    mix: Mix = field(default_factory=Mix)
    _expires_us: int | None = None
    _overdue_us: int = 0

    def __post_init__(self, wanted: PlanRequest, max_grace_us: int, goal: Goal | None) -> None:
        """Make the first plan, so that a wrong one is refused at once."""
        self.planner = Planner(self.limits, wanted, max_grace_us, goal or Goal())

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.planner.plan

    @property
    def max_seq_len(self) -> int:
        """Most tokens of one request, prompt and output together, by limits and model."""
        max_positions = self.session.max_positions if self.session is not None else None
        return min(self.limits.max_seq_len, max_positions or self.limits.max_seq_len)

    @property
    def is_idle(self) -> bool:
        """Whether no request is open and no sequence holds blocks."""
        return not self.requests and not (self.session and self.session.sequences)

    def request_of(self, sequence: int) -> Request | None:
        """Return the request that a sequence of this session is an attempt at; `None` if there is no such sequence."""
        opened = self.session.sequences.get(sequence) if self.session is not None else None
        return opened.request if opened is not None else None

    def on(self, event: SchedulerEvent, *, now_us: int) -> list[SchedulerEffect]:
        """Take one event; return what follows, in order.

        Raises:
            InvalidRequestError: a plan contradicts itself; nothing changed.
        """
        return [*self._take_event(event, now_us), *self.poll(now_us=now_us)]

    def poll(self, *, now_us: int) -> list[SchedulerEffect]:
        """Issue what may be issued, and end what is overdue. Call after every event and at `wake_us`.

        Next: edgeweave_edge.runner.EdgeRunner.run_head
        """
        effects = self._expire_requests(now_us)
        if self.session is None:
            return effects
        effects += self._grow(self.session, now_us)
        while chunk := self._next_chunk(self.session, now_us):
            effects += chunk
        return [*effects, *self._overdue(self.session, now_us)]

    def wake_us(self) -> int | None:
        """Return when `poll` has something to end although no event came; `None`: never."""
        deadlines = self._deadlines() if self._expires_us is not None else []
        units = self._unit_deadlines(self.session) if self.session is not None else []
        return min([*deadlines, *units], default=None)

    def _take_event(self, event: SchedulerEvent, now_us: int) -> list[SchedulerEffect]:
        match event:
            case FromEngine():
                effects = self._take(event, now_us)
            case Request():
                effects = self._submit(event)
            case Cancel():
                effects = self._cancel(event, now_us)
            case PlanRequest():
                effects = self._set_plan(event)
            case Connected():
                effects = self._connect(event)
            case Disconnected():
                effects = self._disconnect(event)
            case StopAdmission():
                self.draining_reason, effects = event.reason, []
        return effects

    # ---- requests

    def _submit(self, request: Request) -> list[SchedulerEffect]:
        error = self._refusal(request)
        if error is not None:
            self.request_totals.take_ended(RequestEnd.REFUSED)
            return [Refuse(request.request_id, error)]
        self.requests[request.request_id] = request
        if request.deadline_us is not None:
            self._expires_us = min(request.deadline_us, self._expires_us or request.deadline_us)
        self.waiting.append(request)
        return []

    def _refusal(self, request: Request) -> EdgeweaveError | None:
        if self.session is None:
            return UnavailableError(f"the mesh does not serve now: {self.down_reason}; try again")
        if self.draining_reason is not None:
            return UnavailableError(f"no new requests are taken: {self.draining_reason}; try again later")
        if request.request_id in self.requests:
            return InvalidRequestError(f"request id {request.request_id!r} is in use; choose another")
        return refusal_of(request, self.session, limits=self.limits, num_waiting=len(self.waiting))

    def _cancel(self, event: Cancel, now_us: int) -> list[SchedulerEffect]:
        request = self.requests.pop(event.request_id, None)
        if request is None:
            return []
        self.request_totals.take_ended(RequestEnd.CANCELLED)
        return self._abandon(request, now_us)

    def _abandon(self, request: Request, now_us: int) -> list[SchedulerEffect]:
        """Stop working on a request that is no longer in `requests`."""
        if request in self.waiting:
            self.waiting.remove(request)
            return []
        session = self.session
        if session is None:
            return []
        abandoned = [sequence for sequence in session.live if sequence.request is request]
        return self._release(session, abandoned, now_us)

    def _expire_requests(self, now_us: int) -> list[SchedulerEffect]:
        """End the requests whose deadline passed; before the first of them, nothing is looked through."""
        if self._expires_us is None or now_us < self._expires_us:
            return []
        effects: list[SchedulerEffect] = []
        for request in [each for each in self.requests.values() if (each.deadline_us or now_us + 1) <= now_us]:
            del self.requests[request.request_id]
            self.request_totals.take_ended(RequestEnd.DEADLINE)
            waited_ms = (now_us - request.arrived_us) // 1000
            error = DeadlineError(f"the deadline passed after {waited_ms} ms and {len(request.output)} tokens")
            effects += [Refuse(request.request_id, error), *self._abandon(request, now_us)]
        self._expires_us = min(self._deadlines(), default=None)
        return effects

    def _deadlines(self) -> list[int]:
        return [request.deadline_us for request in self.requests.values() if request.deadline_us is not None]

    # ---- sessions and plans

    def _connect(self, event: Connected) -> list[SchedulerEffect]:
        self.draining_reason, self._overdue_us = None, 0
        self.session = Session.opened(event)
        self.planner.begin(self.session)
        return self._send_plan(self.session)

    def _disconnect(self, event: Disconnected) -> list[SchedulerEffect]:
        self.down_reason = event.reason
        self.session = None
        self.waiting.clear()
        lost = list(self.requests)
        self.requests.clear()
        self.request_totals.take_ended(RequestEnd.LOST, num_requests=len(lost))
        error = SessionLostError(f"the session was lost: {event.reason}; try again")
        return [Refuse(request_id, error) for request_id in lost]

    def _set_plan(self, wanted: PlanRequest) -> list[SchedulerEffect]:
        self.planner.ask(wanted, self.session)
        return self._send_plan(self.session) if self.session is not None else []

    def _send_plan(self, session: Session) -> list[SchedulerEffect]:
        session.replay.remember(self.plan)
        return [ToEngine(side, self.plan) for side in session.accounts.sides]

    def _replan(self, session: Session, now_us: int) -> list[SchedulerEffect]:
        """Follow what was measured."""
        change = self.planner.follow(session, lambda: self._queue(session), now_us=now_us)
        return [Replanned(change), *self._send_plan(session)] if change is not None else []

    def _queue(self, session: Session) -> Queue:
        return Queue(
            open_requests=len(self.waiting) + session.num_live,
            decode_rows=session.num_decoding,
            mean_prompt=self.mix.mean_prompt,
            mean_output=self.mix.mean_output,
            waiting_tokens=sum(request.num_tokens for request in self.waiting) + session.prefill_tokens_left,
            chunk_tokens=round(session.measures.chunk_tokens) or self.limits.chunk_tokens,
            max_rows=self.limits.max_batch_size,
            max_steps=self.plan.max_steps,
            max_prefills=self.plan.max_prefills,
            most_tokens=self.limits.chunk_tokens,
            fuses=self.plan.may_fuse,
        )

    # ---- issuing

    def _next_chunk(self, session: Session, now_us: int) -> list[SchedulerEffect]:
        """Form and issue one chunk, if the stage table allows it and there is something to put into it."""
        prefilling, is_decoding = session.prefilling, session.is_decoding
        if len(session.chunks) >= self.plan.max_prefills or not (self.waiting or prefilling):
            return []
        view = StageView(
            num_prefills=len(session.chunks),
            decoding=is_decoding,
            waiting=True,
            running=is_decoding,
        )
        if choose_stage(view, self.plan) is not Issue.PREFILL:
            return []
        draft = self._draft(session, prefilling)
        return [] if draft.is_empty else self._issue(session, draft, prefilling, now_us)

    def _draft(self, session: Session, prefilling: list[SchedulerSequence]) -> Draft:
        accounts, num_live = session.accounts, session.num_live
        return form_chunk(
            (Prefilling(sequence.number, sequence.issued, sequence.num_prefill) for sequence in prefilling),
            (Waiting(request.need, is_recompute=bool(request.output)) for request in self.waiting),
            accounts=accounts,
            num_slots=self.limits.max_sequences(max_steps=self.plan.max_steps) - num_live,
            may_admit=not num_live or not (accounts.is_low or session.first_to_grow()),
            limits=self.limits,
            part_tokens=self.planner.ride_tokens(num_decoding=session.num_decoding),
        )

    def _issue(
        self, session: Session, draft: Draft, prefilling: list[SchedulerSequence], now_us: int
    ) -> list[SchedulerEffect]:
        rows = [Row(prefilling[row.index].number, row.start, row.stop) for row in draft.continued]
        effects: list[SchedulerEffect] = []
        for request, drafted in [(self.waiting[row.index], row) for row in draft.admitted]:
            self.waiting.remove(request)
            if not request.is_admitted:
                self.mix.take_admitted(request)
            sequence = session.open(request, now_us=now_us)
            self.request_totals.take_admitted(request, now_us=now_us)
            rows.append(Row(sequence.number, drafted.start, drafted.stop))
            effects.append(ToEngine(Side.EDGE, sequence.opening()))
        chunk = session.issue(
            tuple(rows),
            segments=self.planner.cut(session.body),
            plan=self.plan.plan,
            deadline_ms=self.limits.unit_deadline_ms,
            now_us=now_us,
        )
        return [*effects, *(ToEngine(side, chunk) for side in session.accounts.sides)]

    # ---- what engines say

    def _take(self, event: FromEngine, now_us: int) -> list[SchedulerEffect]:
        if self.session is None:
            return []
        try:
            return self._take_message(self.session, event, now_us)
        except ProtocolError as error:
            return self._end(self.session, str(error))

    def _take_message(self, session: Session, event: FromEngine, now_us: int) -> list[SchedulerEffect]:
        match event.message:
            case ChunkDone():
                return self._take_chunk(session, event.message, now_us)
            case StepDone():
                session.take_step_times(event.message)
                samples = self._take_samples(session, event.message.samples, now_us)
                return [*samples, *self._replan(session, now_us)]
            case UnitFailed():
                return self._take_failure(session, event.message, now_us)
            case Released():
                session.take_released(event.side, event.message)
            case Timeline():
                session.take_timeline(event.side, event.message)
                return self._replan(session, now_us)
        return []

    def _take_chunk(self, session: Session, done: ChunkDone, now_us: int) -> list[SchedulerEffect]:
        issued = session.chunks.pop(done.chunk, None)
        if issued is None:
            return []  # all of it was released; it left the count then
        session.take_chunk_done(issued.chunk, done)
        return self._take_samples(session, done.samples, now_us)

    def _take_samples(self, session: Session, samples: Iterable[Sample], now_us: int) -> list[SchedulerEffect]:
        effects: list[SchedulerEffect] = []
        for sample in samples:
            sequence = session.live_sequence(sample.sequence)
            if sequence is not None:
                effects.append(self._emit(session, sequence, sample, now_us))
                if sample.finish is not None:
                    effects += self._finish(session, sequence, RequestEnd(sample.finish), now_us)
        return effects

    def _emit(self, session: Session, sequence: SchedulerSequence, sample: Sample, now_us: int) -> Emit:
        request = sequence.request
        if sample.index != len(request.output):
            raise ProtocolError(
                f"sequence {sequence.number} sampled output {sample.index}, expected {len(request.output)}"
            )
        session.take_token(sequence, sample.token_id, now_us=now_us)
        self.num_output_tokens += 1
        if request.first_token_us is None:
            self.request_totals.take_first_token(request, now_us=now_us)
        return Emit(request.request_id, sample.index, sample.token_id, sample.finish)

    def _finish(
        self, session: Session, sequence: SchedulerSequence, end: RequestEnd, now_us: int
    ) -> list[SchedulerEffect]:
        """The edge freed the sequence when it ended; what is left to do is in the cloud."""
        del self.requests[sequence.request.request_id]
        self.mix.take_ended(sequence.request)
        self.request_totals.take_finished(sequence.request, end, now_us=now_us)
        session.finish(sequence)
        return self._send_release(session, [sequence], sides=[Side.CLOUD])

    def _take_failure(self, session: Session, event: UnitFailed, now_us: int) -> list[SchedulerEffect]:
        unit = f"chunk {event.chunk}" if event.chunk is not None else f"step {event.step}"
        stage, reason = (name.lower().replace("_", " ") for name in (event.stage.name, event.code.name))
        side = Side.CLOUD if event.stage in CLOUD_STAGES else Side.EDGE
        live = [s for s in map(session.live_sequence, event.sequences) if s is not None]
        effects: list[SchedulerEffect] = []
        for sequence in live:
            del self.requests[sequence.request.request_id]
            error = UnitFailedError(f"the {stage} of {unit} failed in the {side.value} engine: {reason}; see its log")
            effects.append(Refuse(sequence.request.request_id, error))
        self.request_totals.take_ended(RequestEnd.FAILED, num_requests=len(live))
        if event.chunk is not None:
            session.chunks.pop(event.chunk, None)
        return [*effects, *self._release(session, live, now_us)]

    # ---- release and growth

    def _release(self, session: Session, sequences: list[SchedulerSequence], now_us: int) -> list[SchedulerEffect]:
        """Tell both sides to free sequences. From now on their samples are ignored."""
        session.start_release(sequences, now_us=now_us)
        return self._send_release(session, sequences, sides=session.accounts.sides)

    def _send_release(
        self, session: Session, sequences: list[SchedulerSequence], *, sides: Iterable[Side]
    ) -> list[SchedulerEffect]:
        numbers = tuple(sequence.number for sequence in sequences)
        present = [side for side in sides if side in session.accounts.sides]
        return [ToEngine(side, ReleaseSequences(numbers)) for side in present] if numbers else []

    def _grow(self, session: Session, now_us: int) -> list[SchedulerEffect]:
        """Extend limits one block ahead; where blocks are short, preempt and wait for what is released."""
        effects: list[SchedulerEffect] = []
        while (growth := next_growth(session)) is not None:
            sequence = growth.sequence
            if isinstance(growth, Extension):
                held = session.accounts.grow(sequence.number, num_tokens=growth.num_tokens)
                sequence.token_limit = min(held, sequence.max_kv_tokens)
                sequence.advanced_us = now_us
                effects.append(ToEngine(Side.EDGE, ExtendSequence(sequence.number, sequence.token_limit)))
            else:
                self.num_preemptions += 1
                self.waiting.appendleft(sequence.request)  # recomputed in front, under a new number (L33)
                effects += self._release(session, [sequence], now_us)
        return effects

    # ---- deadlines

    def _unit_deadlines(self, session: Session) -> list[int]:
        """Return when something is overdue; a session that ends already waits for nothing more."""
        return [] if session.is_ending else session.unit_deadlines(patience_us=self.limits.unit_deadline_ms * 1000)

    def _overdue(self, session: Session, now_us: int) -> list[SchedulerEffect]:
        """End the session if a unit is overdue. Whatever is issued later is due later than what is away now."""
        if now_us < self._overdue_us:
            return []
        due_us = min(self._unit_deadlines(session), default=None)
        if due_us is None or due_us > now_us:
            self._overdue_us = due_us or now_us + self.limits.unit_deadline_ms * 1000
            return []
        return self._end(session, f"a unit was away for more than {self.limits.unit_deadline_ms} ms")

    def _end(self, session: Session, reason: str) -> list[SchedulerEffect]:
        """Ask once that the streams be closed; `Disconnected` follows."""
        if session.is_ending:
            return []
        session.is_ending = True
        return [EndSession(reason)]
