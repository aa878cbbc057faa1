"""The core of the cloud engine: which segment or step runs next, and whose KV is open.

Knows chunks, steps, sequence lengths and time; decides by `choices.next_unit`. Does not know tensors, streams,
token ids or the model: the shell stages hidden states and runs what the core returns. One core serves one session.
"""

from dataclasses import dataclass, field

from edgeweave.errors import ProtocolError
from edgeweave.interleave.choices import CloudView, Wait, Work, next_unit
from edgeweave.interleave.effects import (
    CloudEffect,
    DropUnit,
    FrameArrived,
    FreeKv,
    RunSegment,
    RunStep,
    SendFailure,
    SendResult,
    Tell,
    UnitEnded,
)
from edgeweave.interleave.ledger import Ending, Ledger
from edgeweave.interleave.nouns import (
    BubbleCause,
    Chunk,
    Lane,
    Plan,
    Released,
    ReleaseSequences,
    Row,
    Segment,
    Stage,
    StepRows,
    Timeline,
    UnitRan,
)
from edgeweave.interleave.plans import MAX_IN_FLIGHT
from edgeweave.interleave.trips import CleanTrips

CloudEvent = Chunk | ReleaseSequences | Plan | FrameArrived | UnitEnded


@dataclass(slots=True)
class CloudChunk:
    """A chunk that was announced: how much of it arrived, and which segment is next."""

    task: Chunk
    announced_us: int
    arrived: int = 0
    complete_us: int | None = None
    first_sent_us: int = 0
    next_segment: int = 0
    live: tuple[bool, ...] = ()


@dataclass(slots=True)
class CloudStep:
    """A step whose frames arrive."""

    task: StepRows
    num_rows: int
    first_sent_us: int
    arrived: int = 0
    complete_us: int | None = None


@dataclass(slots=True)
class CloudSequence:
    """A sequence whose KV is open here. A failed one keeps its KV until it is released, and is skipped."""

    length: int = 0
    failed: bool = False


@dataclass(slots=True)
class Open:
    """The unit that runs now."""

    work: Work
    effect: RunSegment | RunStep
    view: CloudView
    plan: int


@dataclass(slots=True)
class CloudCore:
    """One session of the cloud engine. Times are microseconds of the engine's clock."""

    body: Segment
    plan: Plan
    ledger: Ledger
    sequences: dict[int, CloudSequence] = field(default_factory=dict)
    chunks: dict[int, CloudChunk] = field(default_factory=dict)
    steps: dict[int, CloudStep] = field(default_factory=dict)
    early: dict[int, list[FrameArrived]] = field(default_factory=dict)
    num_skipped: int = 0
    inside_us: int = 0
    _highest_sequence: int = 0
    _highest_chunk: int = 0
    _highest_step: int = 0
    _last: Work | None = None
    _before_last: Work | None = None
    _decode_due_us: int | None = None
    _grace_from_us: int | None = None
    _open: Open | None = None
    _deferred: list[ReleaseSequences] = field(default_factory=list)
    _trips: CleanTrips = field(default_factory=CleanTrips)

    @property
    def is_running(self) -> bool:
        """Whether a unit is open."""
        return self._open is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of any sequence is left here."""
        return not (self.sequences or self.chunks or self.steps or self.early or self._open)

    def on(self, event: CloudEvent, *, now_us: int) -> list[CloudEffect]:
        """Take one event and return what follows from it. Never starts a unit: that is `poll`.

        Raises:
            ProtocolError: the peer broke a rule; the session must end.
        """
        match event:
            case FrameArrived():
                return self._take_frame(event, now_us)
            case UnitEnded():
                return self._end_unit(event, now_us)
            case Chunk():
                return self._announce(event, now_us)
            case ReleaseSequences():
                return self._release(event, now_us)
            case Plan():
                self.plan = event
                return []

    def poll(self, *, now_us: int) -> list[CloudEffect]:
        """Return the next unit to run, if one is ready and none is open. Call after every event."""
        if self._open is not None:
            return []
        view = self._view(now_us)
        choice = next_unit(view, self.plan)
        if isinstance(choice, Wait):
            self._grace_from_us = now_us if self._grace_from_us is None else self._grace_from_us
            return []
        self._grace_from_us = self._grace_from_us if choice is not None else None
        if choice is None:
            return []
        effect = self._begin_segment() if choice is Work.PREFILL else self._begin_step()
        self.ledger.begin_unit(now_us=now_us, ending=self._ending(effect))
        self._grace_from_us = None
        self._open = Open(choice, effect, view, self.plan.plan)
        return [effect]

    def wake_us(self, *, now_us: int) -> int | None:
        """Return when `poll` may have something to run although no event came; `None`: never."""
        if self._open is not None:
            return None
        choice = next_unit(self._view(now_us), self.plan)
        return choice.until_us if isinstance(choice, Wait) else None

    def take_timeline(self, *, now_us: int) -> Timeline:
        """Return what the engine did since the last call."""
        timeline = self.ledger.take(now_us=now_us)
        inside_us, self.inside_us = self.inside_us, 0
        return Timeline(timeline.ran, timeline.bubbles, timeline.idle_us, now_us, inside_us=inside_us)

    # ---- events

    def _announce(self, task: Chunk, now_us: int) -> list[CloudEffect]:
        self._highest_chunk = max(self._highest_chunk, task.chunk)
        for row in task.rows:
            self._create(row)
        self.ledger.set_open(is_open=bool(self.sequences), now_us=now_us)
        self.chunks[task.chunk] = CloudChunk(task, announced_us=now_us)
        effects: list[CloudEffect] = []
        for frame in self.early.pop(task.chunk, []):
            effects += self._take_frame(frame, now_us)
        return effects

    def _create(self, row: Row) -> None:
        if row.sequence <= self._highest_sequence:
            return
        if row.start != 0:
            raise ProtocolError(f"sequence {row.sequence} begins at token {row.start}; a new one begins at 0")
        self._highest_sequence = row.sequence
        self.sequences[row.sequence] = CloudSequence()

    def _take_frame(self, frame: FrameArrived, now_us: int) -> list[CloudEffect]:
        self._trips.observe(frame, now_us=now_us)
        return (
            self._take_chunk_frame(frame, now_us)
            if frame.lane is Lane.PREFILL
            else self._take_step_frame(frame, now_us)
        )

    def _take_chunk_frame(self, frame: FrameArrived, now_us: int) -> list[CloudEffect]:
        if frame.unit > self._highest_chunk:
            return self._hold_early(frame)
        chunk = self.chunks.get(frame.unit)
        if chunk is None:
            return [DropUnit(Lane.PREFILL, frame.unit)]
        if frame.num_rows != chunk.task.num_tokens:
            raise ProtocolError(
                f"chunk {frame.unit} has {chunk.task.num_tokens} tokens, its frame says {frame.num_rows} rows"
            )
        chunk.first_sent_us = frame.sent_us
        chunk.arrived += frame.row_stop - frame.row_start
        if chunk.arrived == frame.num_rows:
            chunk.complete_us = now_us
        return []

    def _hold_early(self, frame: FrameArrived) -> list[CloudEffect]:
        self.early.setdefault(frame.unit, []).append(frame)
        if len(self.early) > MAX_IN_FLIGHT:
            raise ProtocolError(f"frames of {len(self.early)} chunks came before their tasks: {sorted(self.early)}")
        return []

    def _take_step_frame(self, frame: FrameArrived, now_us: int) -> list[CloudEffect]:
        if frame.rows is not None and frame.unit > self._highest_step:
            self._open_step(frame)
        step = self.steps.get(frame.unit)
        if step is None:
            raise ProtocolError(f"a frame of step {frame.unit} came without the rows of that step")
        step.arrived += frame.row_stop - frame.row_start
        if step.arrived == step.num_rows:
            step.complete_us = now_us
        return []

    def _open_step(self, frame: FrameArrived) -> None:
        task = StepRows(frame.unit, frame.rows or ())
        if task.num_tokens != frame.num_rows:
            raise ProtocolError(f"step {frame.unit} names {task.num_tokens} tokens and has {frame.num_rows} rows")
        if len(self.steps) > MAX_IN_FLIGHT:
            raise ProtocolError(f"step {frame.unit} came while {len(self.steps)} steps are here")
        self._highest_step = frame.unit
        self.steps[frame.unit] = CloudStep(task, frame.num_rows, frame.sent_us)

    def _release(self, event: ReleaseSequences, now_us: int) -> list[CloudEffect]:
        if self._open is not None:
            self._deferred.append(event)  # KV is freed between two units, never under one
            return []
        freed = tuple(number for number in event.sequences if self.sequences.pop(number, None) is not None)
        effects: list[CloudEffect] = [FreeKv(freed)] if freed else []
        for number in [n for n, chunk in self.chunks.items() if not any(self._live(chunk.task.rows))]:
            effects += self._drop(number)
        self.ledger.set_open(is_open=bool(self.sequences), now_us=now_us)
        if not self.sequences:
            self._decode_due_us = None
        return [*effects, Tell(Released(event.sequences))]

    def _drop(self, number: int) -> list[CloudEffect]:
        del self.chunks[number]
        return [DropUnit(Lane.PREFILL, number)]

    # ---- choosing

    def _view(self, now_us: int) -> CloudView:
        return CloudView(
            now_us=now_us,
            prefill_ready=self._next_chunk() is not None,
            decode_ready=self._next_step() is not None,
            last=self._last,
            before_last=self._before_last,
            decode_due_us=self._decode_due_us,
        )

    def _next_chunk(self) -> CloudChunk | None:
        """The first chunk in issue order, if all of it is here: bodies run in issue order."""
        chunk = next(iter(self.chunks.values()), None)
        return chunk if chunk is not None and chunk.complete_us is not None else None

    def _next_step(self) -> CloudStep | None:
        return next((step for step in self.steps.values() if step.complete_us is not None), None)

    def _ending(self, effect: RunSegment | RunStep) -> Ending:
        if isinstance(effect, RunStep):
            step = self.steps[effect.step.step]
            arrival_us = self._trips.clean_arrival_us(Lane.DECODE, sent_us=step.first_sent_us)
            return Ending(BubbleCause.AWAIT_DECODE_HIDDEN, None, arrival_us, self._grace_from_us)
        chunk = self.chunks[effect.chunk.chunk]
        arrival_us = self._trips.clean_arrival_us(Lane.PREFILL, sent_us=chunk.first_sent_us)
        announced_us = chunk.announced_us if self._decode_due_us is None else None
        return Ending(BubbleCause.AWAIT_PREFILL_HIDDEN, announced_us, arrival_us, self._grace_from_us)

    # ---- units

    def _begin_segment(self) -> RunSegment:
        chunk = next(iter(self.chunks.values()))
        live = self._live(chunk.task.rows)
        if chunk.next_segment == 0:
            self._advance(chunk.task.rows, live)
        segment = chunk.task.segments[chunk.next_segment]
        chunk.live = live
        return RunSegment(chunk.task, segment, live)

    def _begin_step(self) -> RunStep:
        step = self._next_step()
        if step is None:
            raise ProtocolError("no step is ready")
        live = self._live(step.task.rows)
        self._advance(step.task.rows, live)
        return RunStep(step.task, self.body, live)

    def _live(self, rows: tuple[Row, ...]) -> tuple[bool, ...]:
        return tuple(self._is_live(row) for row in rows)

    def _is_live(self, row: Row) -> bool:
        """A row of a released or failed sequence is skipped; one of a sequence that never was is an error."""
        if row.sequence > self._highest_sequence:
            raise ProtocolError(f"sequence {row.sequence} has a row and was never created")
        sequence = self.sequences.get(row.sequence)
        return sequence is not None and not sequence.failed

    def _advance(self, rows: tuple[Row, ...], live: tuple[bool, ...]) -> None:
        for row, is_live in zip(rows, live, strict=True):
            if not is_live:
                self.num_skipped += 1
                continue
            sequence = self.sequences[row.sequence]
            if sequence.length != row.start:
                raise ProtocolError(
                    f"row [{row.start}, {row.stop}) of sequence {row.sequence} meets a KV length of {sequence.length}"
                )
            sequence.length = row.stop

    def _end_unit(self, event: UnitEnded, now_us: int) -> list[CloudEffect]:
        if self._open is None:
            raise ProtocolError("a unit ended and none was open")
        opened, self._open = self._open, None
        begin_us = self.ledger.since_us
        self.ledger.end_unit(now_us=now_us, ran=_ran(opened, begin_us=begin_us, end_us=now_us))
        self._before_last, self._last = self._last, opened.work
        effect = opened.effect
        if isinstance(effect, RunStep):
            effects = self._end_step(effect, event, now_us)
        else:
            effects = self._end_segment(effect, event, now_us)
        deferred, self._deferred = self._deferred, []
        for release in deferred:
            effects += self._release(release, now_us)
        return effects

    def _end_step(self, effect: RunStep, event: UnitEnded, now_us: int) -> list[CloudEffect]:
        number = effect.step.step
        step = self.steps.pop(number)
        self.inside_us += now_us - (step.complete_us or now_us)
        self._decode_due_us = now_us + self.plan.decode_return_us if any(effect.live) else None
        if event.failure is not None:
            failed = self._fail(effect.step.rows, effect.live)
            return [SendFailure(Lane.DECODE, number, failed, event.failure)]
        return [SendResult(Lane.DECODE, number, effect.step.rows, effect.live)]

    def _end_segment(self, effect: RunSegment, event: UnitEnded, now_us: int) -> list[CloudEffect]:
        number = effect.chunk.chunk
        chunk = self.chunks[number]
        chunk.next_segment += 1
        is_last = chunk.next_segment == len(effect.chunk.segments)
        if event.failure is None and not is_last:
            return []
        del self.chunks[number]
        self.inside_us += now_us - (chunk.complete_us or now_us)
        if event.failure is not None:
            failed = self._fail(effect.chunk.rows, effect.live)
            return [SendFailure(Lane.PREFILL, number, failed, event.failure)]
        return [SendResult(Lane.PREFILL, number, effect.chunk.rows, effect.live)]

    def _fail(self, rows: tuple[Row, ...], live: tuple[bool, ...]) -> tuple[int, ...]:
        failed = tuple(row.sequence for row, is_live in zip(rows, live, strict=True) if is_live)
        for number in failed:
            self.sequences[number].failed = True
        return failed


def _ran(opened: Open, *, begin_us: int, end_us: int) -> UnitRan:
    effect = opened.effect
    is_step = isinstance(effect, RunStep)
    rows = effect.step.rows if isinstance(effect, RunStep) else effect.chunk.rows
    layers = effect.body if isinstance(effect, RunStep) else effect.segment
    live_rows = [row for row, is_live in zip(rows, effect.live, strict=True) if is_live]
    return UnitRan(
        stage=Stage.STEP if is_step else Stage.SEGMENT,
        start=layers.start,
        stop=layers.stop,
        begin_us=begin_us,
        end_us=end_us,
        prefill_ready=opened.view.prefill_ready,
        decode_ready=opened.view.decode_ready,
        num_rows=len(live_rows),
        num_tokens=sum(row.num_tokens for row in live_rows),
        plan=opened.plan,
        chunk=None if isinstance(effect, RunStep) else effect.chunk.chunk,
        step=effect.step.step if isinstance(effect, RunStep) else None,
        num_skipped=len(rows) - len(live_rows),
        decode_due_us=opened.view.decode_due_us,
    )
