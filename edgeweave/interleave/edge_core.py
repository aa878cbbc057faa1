"""The core of the edge engine: heads, tails, and decode as a standing order.

Knows sequences, chunks, steps, limits and time; decides by `choices`. Decides rows of a step and finishes by itself
and asks nobody. Does not know tensors, streams or the model. One core serves one session.
"""

from collections import deque
from dataclasses import dataclass, field

from edgeweave.errors import ProtocolError
from edgeweave.interleave.choices import (
    EdgeView,
    EdgeWork,
    MeshView,
    may_launch_step,
    may_start_head,
    next_edge_unit,
)
from edgeweave.interleave.edge_sequence import EdgeSequence, Phase
from edgeweave.interleave.edge_work import EdgeChunk, EdgeChunks, EdgeStep, Piece
from edgeweave.interleave.effects import (
    Draw,
    DropUnit,
    EdgeEffect,
    FrameArrived,
    FreeKv,
    RunHead,
    RunTail,
    SendPiece,
    Tell,
    UnitEnded,
)
from edgeweave.interleave.ledger import Ending, Ledger
from edgeweave.interleave.nouns import (
    BubbleCause,
    Chunk,
    ChunkDone,
    ErrorCode,
    ExtendSequence,
    Lane,
    OpenSequence,
    Plan,
    Released,
    ReleaseSequences,
    Row,
    Sample,
    Stage,
    StepDone,
    StepRows,
    Timeline,
    UnitFailed,
    UnitRan,
)
from edgeweave.interleave.trips import CleanTrip

EdgeEvent = OpenSequence | ExtendSequence | Chunk | ReleaseSequences | Plan | FrameArrived | UnitEnded


@dataclass(slots=True)
class OpenUnit:
    """The unit that runs now. A turnaround is one unit of two runs: tail of a step, head of the next."""

    work: EdgeWork
    view: EdgeView
    plan: int
    chunk: EdgeChunk | None = None
    piece: Piece | None = None
    back: EdgeStep | None = None
    next: EdgeStep | None = None
    live: tuple[bool, ...] = ()
    draws: tuple[Draw, ...] = ()
    samples: tuple[Sample, ...] = ()
    num_skipped: int = 0
    after: list[EdgeEffect] = field(default_factory=list)


@dataclass(slots=True)
class EdgeCore:
    """One session of the edge engine. Times are microseconds of the engine's clock.

    `piece_tokens` bounds a head or tail piece, so that a turnaround never waits long behind one. `holds_body` says
    that this engine holds all layers, so that nothing ever leaves it.
    """

    plan: Plan
    ledger: Ledger
    piece_tokens: int
    holds_body: bool = False
    sequences: dict[int, EdgeSequence] = field(default_factory=dict)
    chunks: EdgeChunks = field(default_factory=EdgeChunks)
    steps: dict[int, EdgeStep] = field(default_factory=dict)
    home: deque[int] = field(default_factory=deque)
    num_skipped: int = 0
    _highest_sequence: int = 0
    _last_step: int = 0
    _last: EdgeWork | None = None
    _last_was_step: bool = False
    _open: OpenUnit | None = None
    _deferred: list[ReleaseSequences] = field(default_factory=list)
    _trips: dict[Lane, CleanTrip] = field(default_factory=lambda: {lane: CleanTrip() for lane in Lane})

    @property
    def is_running(self) -> bool:
        """Whether a unit is open."""
        return self._open is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of any sequence is left here."""
        return not (self.sequences or self.chunks.open or self.steps or self._open)

    def on(self, event: EdgeEvent, *, now_us: int) -> list[EdgeEffect]:
        """Take one event and return what follows. Starts no unit, but may go on with the open turnaround.

        Raises:
            ProtocolError: a peer broke a rule; the session must end.
        """
        match event:
            case UnitEnded():
                return self._end_run(event, now_us)
            case FrameArrived():
                return self._take_frame(event, now_us)
            case ReleaseSequences():
                return self._release(event, now_us)
            case OpenSequence():
                self._open_sequence(event, now_us)
            case Chunk():
                self.chunks.open[event.chunk] = EdgeChunk(event)
            case ExtendSequence():
                self._extend(event)
            case Plan():
                self.plan = event
        return []

    def poll(self, *, now_us: int) -> list[EdgeEffect]:
        """Return the next unit to run, if one is ready and none is open. Call until it returns nothing."""
        if self._open is not None:
            return []
        view = self._view()
        work = next_edge_unit(view, self.plan)
        if work is None:
            return []
        self._open = OpenUnit(work, view, self.plan.plan)
        self.ledger.begin_unit(now_us=now_us, ending=self._ending(work))
        if work is EdgeWork.HEAD:
            return self._begin_head(self._open)
        if work is EdgeWork.TAIL:
            return self._begin_tail(self._open)
        return self._begin_turnaround(self._open, now_us)

    def take_timeline(self, *, now_us: int) -> Timeline:
        """Return what the engine did since the last call."""
        return self.ledger.take(now_us=now_us)

    # ---- events

    def _open_sequence(self, task: OpenSequence, now_us: int) -> None:
        if task.sequence <= self._highest_sequence:
            raise ProtocolError(f"sequence {task.sequence} is opened after {self._highest_sequence}; numbers rise")
        self._highest_sequence = task.sequence
        self.sequences[task.sequence] = EdgeSequence.opened(task)
        self.ledger.set_open(is_open=True, now_us=now_us)

    def _extend(self, event: ExtendSequence) -> None:
        sequence = self.sequences.get(event.sequence)
        if sequence is not None:
            sequence.token_limit = max(sequence.token_limit, event.token_limit)

    def _release(self, event: ReleaseSequences, now_us: int) -> list[EdgeEffect]:
        if self._open is not None:
            self._deferred.append(event)  # KV is freed between two units, never under one
            return []
        known = tuple(number for number in event.sequences if number in self.sequences)
        effects = self._close(known)
        for number in [n for n, chunk in self.chunks.open.items() if not any(self._live(chunk.task.rows))]:
            effects += self._drop_chunk(number)
        self.ledger.set_open(is_open=bool(self.sequences), now_us=now_us)
        return effects

    def _close(self, numbers: tuple[int, ...]) -> list[EdgeEffect]:
        """Free sequences and say so."""
        if not numbers:
            return []
        for number in numbers:
            if self.sequences.pop(number).phase is Phase.HOME and number in self.home:
                self.home.remove(number)
        return [FreeKv(numbers), Tell(Released(numbers))]

    def _drop_chunk(self, number: int) -> list[EdgeEffect]:
        del self.chunks.open[number]
        return [DropUnit(Lane.PREFILL, number)]

    def _take_frame(self, frame: FrameArrived, now_us: int) -> list[EdgeEffect]:
        work = self.chunks.open.get(frame.unit) if frame.lane is Lane.PREFILL else self.steps.get(frame.unit)
        if work is None:
            return [DropUnit(frame.lane, frame.unit)]
        if frame.failed is not None:
            return self._take_failure(work, frame.code or ErrorCode.COMPUTE)
        if frame.num_rows != work.num_rows:
            raise ProtocolError(
                f"{frame.lane.name.lower()} unit {frame.unit} left with {work.num_rows} rows "
                f"and came back with {frame.num_rows}"
            )
        self._trips[frame.lane].observe(sent_us=frame.sent_us, arrived_us=now_us)
        work.far_sent_us = frame.sent_us
        work.arrived += frame.row_stop - frame.row_start
        if work.arrived == work.num_rows:
            work.returned_us = now_us
        return []

    def _take_failure(self, work: EdgeChunk | EdgeStep, code: ErrorCode) -> list[EdgeEffect]:
        failed = self._fail(work.task.rows)
        if isinstance(work, EdgeChunk):
            number = work.task.chunk
            return [*self._drop_chunk(number), Tell(UnitFailed(failed, code, chunk=number))]
        number = self.steps.pop(work.task.step).task.step
        return [DropUnit(Lane.DECODE, number), Tell(UnitFailed(failed, code, step=number))]

    def _fail(self, rows: tuple[Row, ...]) -> tuple[int, ...]:
        """Skip these sequences from now on; the scheduler will release them."""
        failed = tuple(row.sequence for row in rows if self._is_live(row))
        for number in failed:
            self.sequences[number].failed = True
            if number in self.home:
                self.home.remove(number)
        return failed

    # ---- choosing

    def _view(self) -> EdgeView:
        head = self.chunks.next_head()
        may_head = head is not None and (head.is_away or may_start_head(self._mesh(), self.plan))
        return EdgeView(
            turnaround_ready=self._step_back() is not None or self._may_launch(),
            tail_ready=self.chunks.next_tail() is not None,
            head_ready=may_head,
            last=self._last,
            holds_body=self.holds_body,
        )

    def _mesh(self) -> MeshView:
        return MeshView(
            chunk_away=self.chunks.is_any_away(),
            num_steps_away=len(self.steps),
            chunk_waits=self.chunks.waiting_head() is not None,
            rows_wait=any(self.sequences[number].may_step for number in self.home),
            last_was_step=self._last_was_step,
        )

    def _may_launch(self) -> bool:
        mesh = self._mesh()
        return mesh.rows_wait and may_launch_step(mesh, self.plan)

    def _step_back(self) -> EdgeStep | None:
        return next((step for step in self.steps.values() if step.returned_us is not None), None)

    def _ending(self, work: EdgeWork) -> Ending:
        back = self._step_back() if work is EdgeWork.TURNAROUND else None
        if back is not None:
            arrival_us = self._trips[Lane.DECODE].clean_arrival_us(sent_us=back.far_sent_us)
            return Ending(BubbleCause.AWAIT_DECODE_HIDDEN, clean_arrival_us=arrival_us)
        chunk = self.chunks.next_tail() if work is EdgeWork.TAIL else None
        if chunk is not None:
            arrival_us = self._trips[Lane.PREFILL].clean_arrival_us(sent_us=chunk.far_sent_us)
            return Ending(BubbleCause.AWAIT_PREFILL_HIDDEN, clean_arrival_us=arrival_us)
        return Ending(BubbleCause.AWAIT_TASK)

    def _live(self, rows: tuple[Row, ...]) -> tuple[bool, ...]:
        return tuple(self._is_live(row) for row in rows)

    def _is_live(self, row: Row) -> bool:
        if row.sequence > self._highest_sequence:
            raise ProtocolError(f"sequence {row.sequence} has a row and was never opened")
        return self._is_live_number(row.sequence)

    def _is_live_number(self, number: int) -> bool:
        sequence = self.sequences.get(number)
        return sequence is not None and not sequence.failed

    def _token_ids(self, rows: tuple[Row, ...], live: tuple[bool, ...]) -> tuple[int, ...]:
        pairs = zip(rows, live, strict=True)
        return tuple(t for row, is_live in pairs if is_live for t in self.sequences[row.sequence].token_ids(row))

    # ---- prefill

    def _begin_head(self, unit: OpenUnit) -> list[EdgeEffect]:
        chunk = self.chunks.next_head()
        if chunk is None:
            raise ProtocolError("no head is ready")
        if not chunk.is_away:
            self._last_was_step = False
        unit.chunk, unit.piece = chunk, chunk.piece(chunk.headed, max_tokens=self.piece_tokens)
        unit.live = self._live(unit.piece.rows)
        self._count_skipped(unit)
        for row, is_live in zip(unit.piece.rows, unit.live, strict=True):
            if is_live:
                self.sequences[row.sequence].advance_head(row)
        piece = unit.piece
        tokens = self._token_ids(piece.rows, unit.live)
        number, total = chunk.task.chunk, chunk.num_rows
        return [RunHead(Lane.PREFILL, number, piece.rows, unit.live, tokens, piece.start, piece.stop, total)]

    def _begin_tail(self, unit: OpenUnit) -> list[EdgeEffect]:
        chunk = self.chunks.next_tail()
        if chunk is None:
            raise ProtocolError("no tail is ready")
        unit.chunk, unit.piece = chunk, chunk.piece(chunk.tailed, max_tokens=self.piece_tokens)
        unit.live = self._live(unit.piece.rows)
        self._count_skipped(unit)
        unit.draws = self._advance_tails(unit.piece.rows, unit.live)
        piece = unit.piece
        number = chunk.task.chunk
        return [RunTail(Lane.PREFILL, number, piece.rows, unit.live, unit.draws, piece.start, piece.stop)]

    def _advance_tails(self, rows: tuple[Row, ...], live: tuple[bool, ...]) -> tuple[Draw, ...]:
        draws = []
        for index, (row, is_live) in enumerate(zip(rows, live, strict=True)):
            if is_live:
                sequence = self.sequences[row.sequence]
                sequence.advance_tail(row)
                if sequence.ends_prefill(row):
                    draws.append(sequence.draw(index))
        return tuple(draws)

    def _count_skipped(self, unit: OpenUnit) -> None:
        unit.num_skipped += unit.live.count(False)
        self.num_skipped += unit.live.count(False)

    def _end_head(self, unit: OpenUnit, now_us: int) -> list[EdgeEffect]:
        chunk, piece = unit.chunk, unit.piece
        if chunk is None or piece is None:
            raise ProtocolError("a head ended and none was open")
        chunk.headed = piece.stop
        chunk.sent_us = now_us if chunk.sent_us is None else chunk.sent_us
        if self.holds_body:
            chunk.arrived = piece.stop
            chunk.returned_us = now_us if chunk.head_is_done else None
            return []
        return [SendPiece(Lane.PREFILL, chunk.task.chunk, piece.start, piece.stop, chunk.num_rows)]

    def _end_tail(self, unit: OpenUnit, event: UnitEnded) -> list[EdgeEffect]:
        chunk, piece = unit.chunk, unit.piece
        if chunk is None or piece is None:
            raise ProtocolError("a tail ended and none was open")
        chunk.tailed = piece.stop
        number = chunk.task.chunk
        samples = self._take_tokens(piece.rows, unit.draws, event.token_ids)
        chunk.samples += samples
        if chunk.tailed < chunk.num_rows:
            return []
        del self.chunks.open[number]
        away_us = (chunk.returned_us or 0) - (chunk.sent_us or 0)
        done = ChunkDone(number, tuple(chunk.samples), away_us)
        return [DropUnit(Lane.PREFILL, number), Tell(done), *self._settle(done.samples)]

    def _take_tokens(
        self, rows: tuple[Row, ...], draws: tuple[Draw, ...], token_ids: tuple[int, ...]
    ) -> tuple[Sample, ...]:
        numbers = [rows[draw.row].sequence for draw in draws]
        pairs = zip(numbers, token_ids, strict=True)
        return tuple(self.sequences[number].take(token_id) for number, token_id in pairs)

    def _settle(self, samples: tuple[Sample, ...]) -> list[EdgeEffect]:
        """Bring home what goes on, and free what finished. What was released meanwhile is gone already."""
        mine = [sample for sample in samples if self._is_live_number(sample.sequence)]
        for sample in mine:
            if sample.finish is None:
                self.sequences[sample.sequence].phase = Phase.HOME
                self.home.append(sample.sequence)
        return self._close(tuple(sample.sequence for sample in mine if sample.finish is not None))

    # ---- decode

    def _begin_turnaround(self, unit: OpenUnit, now_us: int) -> list[EdgeEffect]:
        unit.back = self._step_back()
        if unit.back is None:
            return self._launch(unit, now_us)
        rows = unit.back.task.rows
        unit.live = self._live(rows)
        self._count_skipped(unit)
        if not any(unit.live):
            return self._end_step_tail(unit, UnitEnded(), now_us)
        unit.draws = self._advance_tails(rows, unit.live)
        number = unit.back.task.step
        return [RunTail(Lane.DECODE, number, rows, unit.live, unit.draws, 0, unit.back.num_rows)]

    def _end_step_tail(self, unit: OpenUnit, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        step = unit.back
        if step is None:
            raise ProtocolError("the tail of a step ended and none was open")
        number = step.task.step
        del self.steps[number]
        effects: list[EdgeEffect] = [DropUnit(Lane.DECODE, number)]
        if event.failure is not None:
            failed = self._fail(step.task.rows)
            unit.after.append(Tell(UnitFailed(failed, event.failure, step=number)))
        else:
            unit.samples = self._take_tokens(step.task.rows, unit.draws, event.token_ids)
            unit.after += self._settle(unit.samples)
        return effects + self._launch(unit, now_us)

    def _launch(self, unit: OpenUnit, now_us: int) -> list[EdgeEffect]:
        """Send the next step off, if one may leave; the turnaround ends with its head."""
        if not self._may_launch():
            return self._end_turnaround(unit, now_us)
        rows = self._next_rows()
        self._last_step += 1
        self._last_was_step = True
        unit.next = EdgeStep(StepRows(self._last_step, rows))
        live = (True,) * len(rows)
        tokens = self._token_ids(rows, live)
        for row in rows:
            sequence = self.sequences[row.sequence]
            sequence.advance_head(row)
            sequence.phase = Phase.AWAY
        num_rows = unit.next.num_rows
        return [RunHead(Lane.DECODE, self._last_step, rows, live, tokens, 0, num_rows, num_rows)]

    def _next_rows(self) -> tuple[Row, ...]:
        """Take the rows of the next step from those at home, longest there first, a fair share of all."""
        ready = [number for number in self.home if self.sequences[number].may_step]
        num_away = sum(any(self._live((row,))) for step in self.steps.values() for row in step.task.rows)
        share = -(-(len(ready) + num_away) // self.plan.max_steps)
        chosen = ready[: min(share, self.plan.max_batch_size)]
        self.home = deque(number for number in self.home if number not in set(chosen))
        return tuple(self.sequences[number].step_row for number in chosen)

    def _end_step_head(self, unit: OpenUnit, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        step = unit.next
        if step is None:
            raise ProtocolError("the head of a step ended and none was open")
        number = step.task.step
        if event.failure is not None:
            failed = self._fail(step.task.rows)
            unit.after.append(Tell(UnitFailed(failed, event.failure, step=number)))
            return [DropUnit(Lane.DECODE, number), *self._end_turnaround(unit, now_us)]
        step.sent_us = now_us
        self.steps[number] = step
        if self.holds_body:
            step.arrived, step.returned_us = step.num_rows, now_us
            return self._end_turnaround(unit, now_us)
        send = SendPiece(Lane.DECODE, number, 0, step.num_rows, step.num_rows, step.task.rows)
        return [send, *self._end_turnaround(unit, now_us)]

    def _end_turnaround(self, unit: OpenUnit, now_us: int) -> list[EdgeEffect]:
        told: list[EdgeEffect] = []
        if unit.back is not None:
            returned_us = unit.back.returned_us or now_us
            away_us = returned_us - unit.back.sent_us
            told.append(Tell(StepDone(unit.back.task.step, unit.samples, away_us, now_us - returned_us)))
        return [*told, *unit.after, *self._end_unit(unit, now_us)]

    # ---- ends of units

    def _end_run(self, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        unit = self._open
        if unit is None:
            raise ProtocolError("a unit ended and none was open")
        if unit.work is EdgeWork.TURNAROUND:
            if unit.next is None:
                return self._end_step_tail(unit, event, now_us)
            return self._end_step_head(unit, event, now_us)
        if event.failure is not None and unit.chunk is not None:
            effects = self._take_failure(unit.chunk, event.failure)
        elif unit.work is EdgeWork.HEAD:
            effects = self._end_head(unit, now_us)
        else:
            effects = self._end_tail(unit, event)
        return [*effects, *self._end_unit(unit, now_us)]

    def _end_unit(self, unit: OpenUnit, now_us: int) -> list[EdgeEffect]:
        begin_us = self.ledger.since_us
        self.ledger.end_unit(now_us=now_us, ran=_ran(unit, begin_us=begin_us, end_us=now_us))
        self._open = None
        self._last = unit.work
        self.ledger.set_open(is_open=bool(self.sequences), now_us=now_us)
        deferred, self._deferred = self._deferred, []
        return [effect for release in deferred for effect in self._release(release, now_us)]


_STAGES = {EdgeWork.HEAD: Stage.HEAD, EdgeWork.TAIL: Stage.TAIL, EdgeWork.TURNAROUND: Stage.TURNAROUND}


def _ran(unit: OpenUnit, *, begin_us: int, end_us: int) -> UnitRan:
    step = unit.back or unit.next
    rows = unit.piece.rows if unit.piece is not None else step.task.rows if step is not None else ()
    start, stop = (unit.piece.start, unit.piece.stop) if unit.piece is not None else (0, step.num_rows if step else 0)
    return UnitRan(
        stage=_STAGES[unit.work],
        start=start,
        stop=stop,
        begin_us=begin_us,
        end_us=end_us,
        prefill_ready=unit.view.head_ready,
        tail_ready=unit.view.tail_ready,
        decode_ready=unit.view.turnaround_ready,
        num_rows=len(rows) - unit.num_skipped,
        num_tokens=sum(row.num_tokens for row in rows),
        plan=unit.plan,
        chunk=unit.chunk.task.chunk if unit.chunk is not None else None,
        step=step.task.step if unit.chunk is None and step is not None else None,
        num_skipped=unit.num_skipped,
    )
