"""The core of the scheduler: admission, chunks, KV accounts, preemption, plans.

Knows requests, sequences, reservations and what is in flight. Tells edge and cloud what to do and waits for neither.
Does not know token text, tensors, streams or the order of work inside an engine. One core outlives many sessions.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from edgeweave.errors import (
    DeadlineError,
    EdgeweaveError,
    InvalidRequestError,
    OverloadedError,
    PromptTooLongError,
    ProtocolError,
    SessionLostError,
    UnavailableError,
    UnitFailedError,
)
from edgeweave.interleave.accounts import Account, Accounts, Side
from edgeweave.interleave.batching import Draft, Prefilling, Waiting, form_chunk
from edgeweave.interleave.choices import Issue, StageView, choose_stage
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import (
    Attached,
    Chunk,
    ChunkDone,
    ExtendSequence,
    FinishReason,
    LanesReady,
    OpenSequence,
    Plan,
    Released,
    ReleaseSequences,
    Row,
    Sample,
    Segment,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.interleave.plans import (
    DEFAULT_NUM_SEGMENTS,
    PlanRequest,
    cut_evenly,
    make_plan,
    with_decode_return,
)
from edgeweave.interleave.replay import Replay
from edgeweave.interleave.requests import Attempt, Request, SchedulerSequence
from edgeweave.interleave.totals import SessionTotals

REPLAN_INTERVAL_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Connected:
    """A session serves: what both sides hold. `cloud` and `lanes` are absent where the edge holds all layers."""

    session: int
    edge: Attached
    cloud: Attached | None
    lanes: LanesReady | None


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The session ended, or none can begin."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """The client of a request went away."""

    request_id: str


@dataclass(frozen=True, slots=True)
class StopAdmission:
    """Open requests end and no new ones begin, until the next session."""

    reason: str


@dataclass(frozen=True, slots=True)
class FromEngine:
    """A message of an engine's task stream."""

    side: Side
    message: ChunkDone | StepDone | Released | UnitFailed | Timeline


SchedulerEvent = Request | Cancel | PlanRequest | Connected | Disconnected | StopAdmission | FromEngine


@dataclass(frozen=True, slots=True)
class ToEngine:
    """Send a task to one side."""

    side: Side
    task: OpenSequence | ExtendSequence | Chunk | ReleaseSequences | Plan


@dataclass(frozen=True, slots=True)
class Emit:
    """Give the client one token; with `finish`, its last."""

    request_id: str
    index: int
    token_id: int
    finish: FinishReason | None


@dataclass(frozen=True, slots=True)
class Refuse:
    """End a request with an error."""

    request_id: str
    error: EdgeweaveError


@dataclass(frozen=True, slots=True)
class EndSession:
    """The session cannot go on; its streams must be closed."""

    reason: str


SchedulerEffect = ToEngine | Emit | Refuse | EndSession


@dataclass(slots=True)
class Issued:
    """A chunk in flight."""

    chunk: Chunk
    deadline_us: int


@dataclass(slots=True)
class Session:
    """What lives and dies with one session."""

    number: int
    body: Segment
    accounts: Accounts
    replay: Replay
    rtt_us: int = 0
    prefill_bytes_per_s: int = 0
    sequences: dict[int, SchedulerSequence] = field(default_factory=dict)
    chunks: dict[int, Issued] = field(default_factory=dict)
    totals: SessionTotals = field(default_factory=SessionTotals)
    turnaround_us: int = 0
    last_sequence: int = 0
    last_chunk: int = 0

    @property
    def live(self) -> list[SchedulerSequence]:
        """Sequences whose results still count, oldest first."""
        return [sequence for sequence in self.sequences.values() if sequence.is_live]


@dataclass(slots=True)
class SchedulerCore:
    """Decides for the whole mesh. Times are microseconds of the scheduler's clock."""

    limits: Limits
    wanted: PlanRequest
    max_grace_us: int
    plan: Plan = field(init=False)
    requests: dict[str, Request] = field(default_factory=dict)
    waiting: deque[Request] = field(default_factory=deque)
    session: Session | None = None
    down_reason: str = "no session yet"
    draining_reason: str | None = None
    num_preemptions: int = 0
    num_output_tokens: int = 0
    _replanned_us: int = 0

    def __post_init__(self) -> None:
        """Make the first plan, so that a wrong one is refused at once."""
        self.plan = self._planned(number=1)

    @property
    def is_idle(self) -> bool:
        """Whether no request is open and no sequence holds blocks."""
        return not self.requests and not (self.session and self.session.sequences)

    def on(self, event: SchedulerEvent, *, now_us: int) -> list[SchedulerEffect]:
        """Take one event; return what follows, in order.

        Raises:
            InvalidRequestError: a plan contradicts itself; nothing changed.
        """
        match event:
            case FromEngine():
                effects = self._take(event, now_us)
            case Request():
                effects = self._submit(event)
            case Cancel():
                effects = self._cancel(event)
            case PlanRequest():
                effects = self._set_plan(event)
            case Connected():
                effects = self._connect(event)
            case Disconnected():
                effects = self._disconnect(event)
            case StopAdmission():
                self.draining_reason = event.reason
                effects = []
        return [*effects, *self.poll(now_us=now_us)]

    def poll(self, *, now_us: int) -> list[SchedulerEffect]:
        """Issue what may be issued, and end what is overdue. Call after every event and at `wake_us`."""
        if self.session is None:
            return self._expire_requests(now_us)
        effects = [*self._expire_requests(now_us), *self._grow(now_us)]
        while (chunk := self._next_chunk(now_us)) is not None:
            effects += chunk
        return [*effects, *self._overdue(now_us)]

    def wake_us(self) -> int | None:
        """Return when `poll` has something to end although no event came; `None`: never."""
        deadlines = [request.deadline_us for request in self.requests.values() if request.deadline_us is not None]
        return min([*deadlines, *self._unit_deadlines()], default=None)

    # ---- requests

    def _submit(self, request: Request) -> list[SchedulerEffect]:
        error = self._refusal(request)
        if error is not None:
            return [Refuse(request.request_id, error)]
        request.num_emitted = len(request.output)
        self.requests[request.request_id] = request
        self.waiting.append(request)
        return []

    def _refusal(self, request: Request) -> EdgeweaveError | None:
        if request.request_id in self.requests:
            return InvalidRequestError(f"request id {request.request_id!r} is in use; choose another")
        if self.draining_reason is not None:
            return UnavailableError(f"no new requests are taken: {self.draining_reason}; try again later")
        if self.session is None:
            return UnavailableError(f"the mesh does not serve now: {self.down_reason}; try again")
        if len(self.waiting) >= self.limits.max_waiting:
            return OverloadedError(f"{len(self.waiting)} requests wait already (max_waiting); try again later")
        return self._misfit(request, self.session.accounts)

    def _misfit(self, request: Request, accounts: Accounts) -> EdgeweaveError | None:
        num_prompt, total = len(request.prompt), len(request.prompt) + request.max_tokens
        if total > self.limits.max_seq_len:
            return PromptTooLongError(
                f"a prompt of {num_prompt} tokens with max_tokens {request.max_tokens} makes {total}, "
                f"and max_seq_len is {self.limits.max_seq_len}; shorten one of them"
            )
        if not accounts.can_ever_hold(request.need.max_kv_tokens):
            return PromptTooLongError(
                f"a prompt of {num_prompt} tokens with max_tokens {request.max_tokens} needs more KV than "
                f"one side has in all ({_capacities(accounts)}); shorten it, or give the engines more kv_bytes"
            )
        return None

    def _cancel(self, event: Cancel) -> list[SchedulerEffect]:
        request = self.requests.pop(event.request_id, None)
        return self._abandon(request) if request is not None else []

    def _abandon(self, request: Request) -> list[SchedulerEffect]:
        """Stop working on a request that is no longer in `requests`."""
        if request in self.waiting:
            self.waiting.remove(request)
            return []
        attempts = [sequence for sequence in self._live() if sequence.request is request]
        return self._release(attempts)

    def _expire_requests(self, now_us: int) -> list[SchedulerEffect]:
        effects: list[SchedulerEffect] = []
        for request in list(self.requests.values()):
            if request.deadline_us is not None and request.deadline_us <= now_us:
                del self.requests[request.request_id]
                waited_ms = (now_us - request.arrived_us) // 1000
                error = DeadlineError(f"the deadline passed after {waited_ms} ms and {len(request.output)} tokens")
                effects += [Refuse(request.request_id, error), *self._abandon(request)]
        return effects

    # ---- sessions and plans

    def _connect(self, event: Connected) -> list[SchedulerEffect]:
        capacities = {Side.EDGE: event.edge.kv} | ({Side.CLOUD: event.cloud.kv} if event.cloud else {})
        accounts = Accounts({side: Account(capacity) for side, capacity in capacities.items()})
        replay = Replay(holds_body=event.cloud is None)
        self.draining_reason = None
        self.session = Session(event.session, event.edge.body, accounts, replay)
        if event.lanes is not None:
            self.session.rtt_us = event.lanes.rtt_us
            self.session.prefill_bytes_per_s = event.lanes.prefill_bytes_per_s
        self.plan = self._planned(number=self.plan.plan + 1)
        return self._send_plan(self.session)

    def _disconnect(self, event: Disconnected) -> list[SchedulerEffect]:
        self.down_reason = event.reason
        self.session = None
        self.waiting.clear()
        lost = list(self.requests)
        self.requests.clear()
        error = SessionLostError(f"the session was lost: {event.reason}; try again")
        return [Refuse(request_id, error) for request_id in lost]

    def _set_plan(self, wanted: PlanRequest) -> list[SchedulerEffect]:
        before, self.wanted = self.wanted, wanted
        try:
            self.plan = self._planned(number=self.plan.plan + 1)
        except InvalidRequestError:
            self.wanted = before
            raise
        return self._send_plan(self.session) if self.session is not None else []

    def _planned(self, *, number: int) -> Plan:
        limits = self.limits
        plan = make_plan(
            self.wanted, number=number, max_batch_size=limits.max_batch_size, max_grace_us=self.max_grace_us
        )
        return with_decode_return(plan, number=number, decode_return_us=self._decode_return_us())

    def _decode_return_us(self) -> int:
        """Expected time from the end of a step in the cloud to the next one's arrival: link and turnaround (L15)."""
        session = self.session
        return session.rtt_us + session.turnaround_us if session and session.turnaround_us else 0

    def _send_plan(self, session: Session) -> list[SchedulerEffect]:
        session.replay.remember(self.plan)
        return [ToEngine(side, self.plan) for side in session.accounts.sides]

    def _replan(self, session: Session, now_us: int) -> list[SchedulerEffect]:
        """Follow the measured decode return, at most once a second and only if it moved by a fifth."""
        wanted_us, used_us = self._decode_return_us(), self.plan.decode_return_us
        if now_us - self._replanned_us < REPLAN_INTERVAL_US or abs(wanted_us - used_us) * 5 <= used_us:
            return []
        self._replanned_us = now_us
        self.plan = with_decode_return(self.plan, number=self.plan.plan + 1, decode_return_us=wanted_us)
        return self._send_plan(session)

    # ---- issuing

    def _next_chunk(self, now_us: int) -> list[SchedulerEffect] | None:
        """Form and issue one chunk, if the stage table allows it and there is something to put into it."""
        session = self.session
        if session is None or len(session.chunks) >= self.plan.max_prefills:
            return None
        live = session.live
        view = StageView(
            num_prefills=len(session.chunks),
            decoding=any(sequence.state is Attempt.DECODING for sequence in live),
            waiting=bool(self.waiting) or any(sequence.issued < sequence.num_prefill for sequence in live),
            running=any(sequence.state is Attempt.DECODING for sequence in live),
        )
        if choose_stage(view, self.plan) is not Issue.PREFILL:
            return None
        open_ones = [sequence for sequence in live if sequence.issued < sequence.num_prefill]
        draft = self._draft(session, live, open_ones)
        return None if draft.is_empty else self._issue(session, draft, open_ones, now_us)

    def _draft(self, session: Session, live: list[SchedulerSequence], open_ones: list[SchedulerSequence]) -> Draft:
        accounts = session.accounts
        grows = any(self._wants_growth(sequence, accounts) for sequence in live)
        return form_chunk(
            [Prefilling(sequence.number, sequence.issued, sequence.num_prefill) for sequence in open_ones],
            [Waiting(request.need, is_recompute=bool(request.output)) for request in self.waiting],
            accounts=accounts,
            num_slots=self.plan.max_steps * self.limits.max_batch_size - len(live),
            may_admit=not live or not (accounts.is_low or grows),
            limits=self.limits,
        )

    def _issue(
        self, session: Session, draft: Draft, open_ones: list[SchedulerSequence], now_us: int
    ) -> list[SchedulerEffect]:
        rows = [Row(open_ones[row.index].number, row.start, row.stop) for row in draft.continued]
        effects: list[SchedulerEffect] = []
        chosen = [(self.waiting[row.index], row) for row in draft.admitted]
        for request, row in chosen:
            self.waiting.remove(request)
            sequence = self._open(session, request, now_us)
            rows.append(Row(sequence.number, row.start, row.stop))
            effects.append(ToEngine(Side.EDGE, sequence.opening()))
        for issued_row in rows:
            session.sequences[issued_row.sequence].issued = issued_row.stop
        session.last_chunk += 1
        chunk = Chunk(session.last_chunk, tuple(rows), self._cut(session), self.plan.plan, self.limits.unit_deadline_ms)
        session.chunks[chunk.chunk] = Issued(chunk, now_us + chunk.deadline_ms * 1000)
        return [*effects, *(ToEngine(side, chunk) for side in session.accounts.sides)]

    def _open(self, session: Session, request: Request, now_us: int) -> SchedulerSequence:
        session.last_sequence += 1
        number = session.last_sequence
        token_limit = session.accounts.admit(number, request.need)
        num_tokens = len(request.tokens)
        sequence = SchedulerSequence(
            number, request, num_tokens, token_limit, num_tokens, now_us, unreleased=set(session.accounts.sides)
        )
        session.sequences[number] = sequence
        return sequence

    def _cut(self, session: Session) -> tuple[Segment, ...]:
        if session.body.num_layers == 0:
            return ()
        return cut_evenly(session.body, num_segments=self.wanted.num_segments or DEFAULT_NUM_SEGMENTS)

    # ---- what engines say

    def _take(self, event: FromEngine, now_us: int) -> list[SchedulerEffect]:
        session = self.session
        if session is None:
            return []
        try:
            return self._take_message(session, event, now_us)
        except ProtocolError as error:
            return [EndSession(str(error))]

    def _take_message(self, session: Session, event: FromEngine, now_us: int) -> list[SchedulerEffect]:
        match event.message:
            case ChunkDone():
                return self._take_chunk(session, event.message, now_us)
            case StepDone():
                return self._take_step(session, event.message, now_us)
            case UnitFailed():
                return self._take_failure(session, event.side, event.message)
            case Released():
                self._take_released(session, event.side, event.message)
            case Timeline():
                self._take_timeline(session, event.side, event.message)
        return []

    def _take_chunk(self, session: Session, done: ChunkDone, now_us: int) -> list[SchedulerEffect]:
        if session.chunks.pop(done.chunk, None) is None:
            return []  # all of it was released; it left the count then
        session.totals.away_us += done.away_us
        session.totals.num_chunks_done += 1
        return self._take_samples(session, done.samples, now_us)

    def _take_step(self, session: Session, done: StepDone, now_us: int) -> list[SchedulerEffect]:
        session.totals.away_us += done.away_us + done.turnaround_us
        session.totals.num_steps_done += 1
        seen_us = session.turnaround_us or done.turnaround_us
        session.turnaround_us = seen_us + (done.turnaround_us - seen_us) // 8
        return [*self._take_samples(session, done.samples, now_us), *self._replan(session, now_us)]

    def _take_samples(self, session: Session, samples: Iterable[Sample], now_us: int) -> list[SchedulerEffect]:
        effects: list[SchedulerEffect] = []
        for sample in samples:
            sequence = session.sequences.get(sample.sequence)
            if sequence is not None and sequence.is_live:
                effects += self._take_sample(sequence, sample, now_us)
        return effects

    def _take_sample(self, sequence: SchedulerSequence, sample: Sample, now_us: int) -> list[SchedulerEffect]:
        request = sequence.request
        if sample.index != len(request.output):
            raise ProtocolError(
                f"sequence {sequence.number} sampled output {sample.index}, expected {len(request.output)}"
            )
        request.output.append(sample.token_id)
        self.num_output_tokens += 1
        sequence.state, sequence.advanced_us = Attempt.DECODING, now_us
        sequence.num_tokens += 1
        emit = Emit(request.request_id, sample.index, sample.token_id, sample.finish)
        if sample.finish is None:
            return [emit]
        del self.requests[request.request_id]
        sequence.state = Attempt.RELEASING  # the edge freed it by itself and says so; only the cloud has to be told
        return [emit, *self._send_release((sequence.number,), sides=[Side.CLOUD])]

    def _take_released(self, session: Session, side: Side, event: Released) -> None:
        for number in event.sequences:
            sequence = session.sequences.get(number)
            if sequence is None or side not in sequence.unreleased:
                continue
            sequence.unreleased.remove(side)
            session.accounts.release(number, side=side)
            if not sequence.unreleased:
                del session.sequences[number]

    def _take_failure(self, session: Session, side: Side, event: UnitFailed) -> list[SchedulerEffect]:
        unit = f"chunk {event.chunk}" if event.chunk is not None else f"step {event.step}"
        reason = event.code.name.lower().replace("_", " ")
        effects: list[SchedulerEffect] = []
        failed = [session.sequences[n] for n in event.sequences if n in session.sequences]
        live = [sequence for sequence in failed if sequence.is_live]
        for sequence in live:
            del self.requests[sequence.request.request_id]
            error = UnitFailedError(f"{unit} failed, reported by the {side.value} engine: {reason}; see its log")
            effects.append(Refuse(sequence.request.request_id, error))
        effects += self._release(live)
        if event.chunk is not None:
            session.chunks.pop(event.chunk, None)
        return effects

    def _take_timeline(self, session: Session, side: Side, event: Timeline) -> None:
        session.totals.add(event, side=side)
        for ran in event.ran:
            session.replay.observe(ran)

    # ---- release, growth, preemption

    def _release(self, sequences: list[SchedulerSequence]) -> list[SchedulerEffect]:
        """Tell both sides to free sequences. From now on their samples are ignored."""
        session = self.session
        if session is None or not sequences:
            return []
        for sequence in sequences:
            sequence.state = Attempt.RELEASING
        for number in [n for n, issued in session.chunks.items() if not self._is_any_live(session, issued.chunk)]:
            del session.chunks[number]
        return self._send_release(tuple(s.number for s in sequences), sides=session.accounts.sides)

    def _send_release(self, numbers: tuple[int, ...], *, sides: Iterable[Side]) -> list[SchedulerEffect]:
        session = self.session
        present = session.accounts.sides if session is not None else {}
        return [ToEngine(side, ReleaseSequences(numbers)) for side in sides if side in present]

    def _is_any_live(self, session: Session, chunk: Chunk) -> bool:
        rows = (session.sequences.get(row.sequence) for row in chunk.rows)
        return any(sequence is not None and sequence.is_live for sequence in rows)

    def _live(self) -> list[SchedulerSequence]:
        return self.session.live if self.session is not None else []

    def _wants_growth(self, sequence: SchedulerSequence, accounts: Accounts) -> bool:
        """Whether the sequence comes within one block of its limit and may need more."""
        is_near = sequence.token_limit - sequence.num_tokens < accounts.largest_block
        return sequence.state is Attempt.DECODING and is_near and sequence.token_limit < sequence.max_kv_tokens

    def _grow(self, now_us: int) -> list[SchedulerEffect]:
        """Extend limits one block ahead, oldest first; where blocks are short, preempt the newest and wait."""
        session = self.session
        effects: list[SchedulerEffect] = []
        for sequence in self._live():
            if session is None or not (sequence.is_live and self._wants_growth(sequence, session.accounts)):
                continue
            wanted = min(sequence.token_limit + session.accounts.largest_block, sequence.max_kv_tokens)
            if session.accounts.missing_blocks(sequence.number, num_tokens=wanted):
                return [*effects, *self._preempt_for(session, sequence, wanted)]
            session.accounts.grow(sequence.number, num_tokens=wanted)
            sequence.token_limit = min(session.accounts.limit(sequence.number), sequence.max_kv_tokens)
            sequence.advanced_us = now_us
            effects.append(ToEngine(Side.EDGE, ExtendSequence(sequence.number, sequence.token_limit)))
        return effects

    def _preempt_for(self, session: Session, sequence: SchedulerSequence, num_tokens: int) -> list[SchedulerEffect]:
        """Preempt the newest sequences until what they hold covers what is short; the oldest is never preempted."""
        effects: list[SchedulerEffect] = []
        while not self._is_covered(session, sequence, num_tokens):
            live = session.live
            if len(live) == 1 or live[-1] is live[0]:
                break
            effects += self._preempt(live[-1])
            if not sequence.is_live:
                break
        return effects

    def _is_covered(self, session: Session, sequence: SchedulerSequence, num_tokens: int) -> bool:
        """Whether blocks that are being released will do; nothing more has to be preempted then."""
        short = session.accounts.missing_blocks(sequence.number, num_tokens=num_tokens)
        leaving = [s for s in session.sequences.values() if not s.is_live]
        for side, count in short.items():
            coming = sum(session.accounts.sides[side].reserved.get(s.number, 0) for s in leaving)
            if coming < count:
                return False
        return True

    def _preempt(self, sequence: SchedulerSequence) -> list[SchedulerEffect]:
        """Release a sequence and put its request back in front; it is recomputed under a new number (L33)."""
        self.num_preemptions += 1
        self.waiting.appendleft(sequence.request)
        return self._release([sequence])

    # ---- deadlines

    def _unit_deadlines(self) -> list[int]:
        session = self.session
        if session is None:
            return []
        patience_us = self.limits.unit_deadline_ms * 1000
        steps = [s.advanced_us + patience_us for s in session.live if s.may_move]
        return [*(issued.deadline_us for issued in session.chunks.values()), *steps]

    def _overdue(self, now_us: int) -> list[SchedulerEffect]:
        due_us = min(self._unit_deadlines(), default=None)
        if due_us is None or due_us > now_us:
            return []
        return [EndSession(f"a unit was away for more than {self.limits.unit_deadline_ms} ms")]


def _capacities(accounts: Accounts) -> str:
    sides = accounts.sides.items()
    return ", ".join(f"{side.value} {a.capacity.num_blocks} x {a.capacity.block_tokens} tokens" for side, a in sides)
