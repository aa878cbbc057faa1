"""The core of the edge engine: heads, tails, and decode as a standing order.

Knows sequences, chunks, steps, limits and time; decides by `choices`. Decides rows of a step and finishes by itself
and asks nobody. Does not know tensors, streams or the model. One core serves one session.
"""

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
from edgeweave.interleave.edge_sequence import EdgeSequence
from edgeweave.interleave.edge_sequences import EdgeSequences
from edgeweave.interleave.edge_unit import EdgeUnit
from edgeweave.interleave.edge_work import EdgeChunk, EdgeChunks, EdgeStep, EdgeSteps, Piece
from edgeweave.interleave.effects import (
    DropUnit,
    EdgeEffect,
    FrameArrived,
    FreeKv,
    RunFusedHead,
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
    Stage,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.interleave.trips import CleanTrips

EdgeEvent = OpenSequence | ExtendSequence | Chunk | ReleaseSequences | Plan | FrameArrived | UnitEnded


@dataclass(slots=True)
class EdgeCore:
    """One session of the edge engine. Times are microseconds of the engine's clock.

    `piece_tokens` bounds a head or tail piece, so that it delays a turnaround by little. `holds_body` says
    that this engine holds all layers, so that nothing ever leaves it.
    """

    plan: Plan
    ledger: Ledger
    piece_tokens: int
    holds_body: bool = False
    book: EdgeSequences = field(default_factory=EdgeSequences)
    chunks: EdgeChunks = field(default_factory=EdgeChunks)
    steps: EdgeSteps = field(default_factory=EdgeSteps)
    num_skipped: int = 0
    _last: EdgeWork | None = None
    _prefill_run_us: int = 0
    _last_was_step: bool = False
    _unit: EdgeUnit | None = None
    _deferred: list[ReleaseSequences] = field(default_factory=list)
    _trips: CleanTrips = field(default_factory=CleanTrips)

    @property
    def sequences(self) -> dict[int, EdgeSequence]:
        """Sequences that are open here, by number."""
        return self.book.open

    @property
    def is_running(self) -> bool:
        """Whether a unit is open."""
        return self._unit is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of any sequence is left here."""
        return not (self.book.open or self.chunks.open or self.steps.away or self._unit)

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
                self.book.create(event)
                self._set_open(now_us)
            case Chunk():
                self.chunks.open[event.chunk] = EdgeChunk(event)
            case ExtendSequence():
                self.book.extend(event)
            case Plan():
                self.plan = event
        return []

    def poll(self, *, now_us: int) -> list[EdgeEffect]:
        """Return the next unit to run, if one is ready and none is open. Call until it returns nothing."""
        if self._unit is not None:
            return []
        view = self._view()
        work = next_edge_unit(view, self.plan)
        if work is None:
            return []
        self._unit = EdgeUnit(work, view, self.plan.plan)
        self.ledger.begin_unit(now_us=now_us, ending=self._ending(work))
        if work in (EdgeWork.TURNAROUND, EdgeWork.FUSED):
            return self._begin_turnaround(self._unit, now_us)
        return [self._head(self._unit)] if work is EdgeWork.HEAD else self._begin_tail(self._unit)

    def take_timeline(self, *, now_us: int) -> Timeline:
        """Return what the engine did since the last call."""
        return self.ledger.take(now_us=now_us)

    # ---- events

    def _release(self, event: ReleaseSequences, now_us: int) -> list[EdgeEffect]:
        if self._unit is not None:
            self._deferred.append(event)  # KV is freed between two units, never under one
            return []
        effects = self._close(self.book.known(event.sequences))
        for number in [n for n, chunk in self.chunks.open.items() if not any(self.book.live(chunk.task.rows))]:
            effects += self._drop_chunk(number)
        self._set_open(now_us)
        return effects

    def _close(self, numbers: tuple[int, ...]) -> list[EdgeEffect]:
        """Free sequences and say so."""
        self.book.close(numbers)
        return [FreeKv(numbers), Tell(Released(numbers))] if numbers else []

    def _drop_chunk(self, number: int) -> list[EdgeEffect]:
        del self.chunks.open[number]
        return [DropUnit(Lane.PREFILL, number)]

    def _take_frame(self, frame: FrameArrived, now_us: int) -> list[EdgeEffect]:
        work = self.chunks.open.get(frame.unit) if frame.lane is Lane.PREFILL else self.steps.away.get(frame.unit)
        if work is None:
            return [DropUnit(frame.lane, frame.unit)]
        if frame.failed is not None:
            stage = Stage.SEGMENT if frame.lane is Lane.PREFILL else Stage.STEP
            return self._take_failure(work, frame.code or ErrorCode.COMPUTE, stage)
        here_us = frame.here_us(now_us=now_us)
        self._trips.observe(frame, now_us=here_us)
        work.take(frame, now_us=here_us)
        return []

    def _take_failure(self, work: EdgeChunk | EdgeStep, code: ErrorCode, stage: Stage) -> list[EdgeEffect]:
        failed = self.book.fail(work.task.rows)
        if isinstance(work, EdgeChunk):
            return [*self._drop_chunk(work.number), Tell(UnitFailed(failed, code, stage, chunk=work.number))]
        self.steps.away.pop(work.number, None)
        return [DropUnit(Lane.DECODE, work.number), Tell(UnitFailed(failed, code, stage, step=work.number))]

    def _set_open(self, now_us: int) -> None:
        self.ledger.set_open(is_open=bool(self.book.open), now_us=now_us)

    # ---- choosing

    def _view(self) -> EdgeView:
        head = self.chunks.next_head()
        return EdgeView(
            turnaround_ready=self.steps.first_back() is not None or self._may_launch(),
            tail_ready=self._next_tail() is not None,
            head_ready=head is not None and (head.is_away or may_start_head(self._mesh(), self.plan)),
            holds_body=self.holds_body,
            last=self._last,
            prefill_run_us=self._prefill_run_us,
            decode_rows=self._decode_rows() if self.holds_body else 0,
        )

    def _next_tail(self) -> EdgeChunk | None:
        return self.chunks.next_tail(may_overtake=self.plan.may_fuse)

    def _decode_rows(self) -> int:
        """Return how many sequences are through their prefill."""
        return self.book.num_may_step + self.steps.num_rows_away

    def _mesh(self) -> MeshView:
        return MeshView(
            chunk_away=self.chunks.is_any_away(),
            num_steps_away=len(self.steps.away),
            chunk_waits=self.chunks.waiting_head() is not None,
            rows_wait=self.book.any_may_step,
            last_was_step=self._last_was_step,
        )

    def _may_launch(self) -> bool:
        return self.book.any_may_step and may_launch_step(self._mesh(), self.plan)

    def _ending(self, work: EdgeWork) -> Ending:
        """Return what a bubble before this unit was: a wait for hidden states, or for something to do."""
        back = self.steps.first_back() if work in (EdgeWork.TURNAROUND, EdgeWork.FUSED) else None
        if back is not None:
            arrival_us = self._trips.clean_arrival_us(Lane.DECODE, sent_us=back.far_sent_us)
            return Ending(BubbleCause.AWAIT_DECODE_HIDDEN, clean_arrival_us=arrival_us)
        chunk = self._next_tail() if work is EdgeWork.TAIL else None
        if chunk is not None:
            arrival_us = self._trips.clean_arrival_us(Lane.PREFILL, sent_us=chunk.far_sent_us)
            return Ending(BubbleCause.AWAIT_PREFILL_HIDDEN, clean_arrival_us=arrival_us)
        return Ending(BubbleCause.AWAIT_TASK)

    # ---- prefill

    def _head(self, unit: EdgeUnit) -> RunHead:
        chunk = self.chunks.next_head()
        if chunk is None:
            raise ProtocolError("no head is ready")
        if not chunk.is_away:
            self._last_was_step = False
        piece = self._begin_piece(unit, chunk, start=chunk.headed)
        self.book.advance_heads(piece.rows, unit.live)
        tokens = self.book.token_ids(piece.rows, unit.live)
        span = (piece.start, piece.stop, chunk.num_rows)
        return RunHead(Lane.PREFILL, chunk.number, piece.rows, unit.live, tokens, *span)

    def _begin_tail(self, unit: EdgeUnit) -> list[EdgeEffect]:
        chunk = self._next_tail()
        if chunk is None:
            raise ProtocolError("no tail is ready")
        piece = self._begin_piece(unit, chunk, start=chunk.tailed)
        unit.draws = self.book.advance_tails(piece.rows, unit.live)
        return [RunTail(Lane.PREFILL, chunk.number, piece.rows, unit.live, unit.draws, piece.start, piece.stop)]

    def _begin_piece(self, unit: EdgeUnit, chunk: EdgeChunk, *, start: int) -> Piece:
        unit.chunk, unit.piece = chunk, chunk.piece(start, max_tokens=self.piece_tokens)
        unit.live = self.book.live(unit.piece.rows)
        self._count_skipped(unit, unit.piece.rows)
        return unit.piece

    def _count_skipped(self, unit: EdgeUnit, rows: tuple[Row, ...]) -> None:
        unit.skip(rows)
        self.num_skipped += unit.live.count(False)

    def _end_piece(self, unit: EdgeUnit, chunk: EdgeChunk, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        piece = unit.piece
        if event.failure is not None or piece is None:
            return self._take_failure(chunk, event.failure or ErrorCode.COMPUTE, unit.stage)
        if unit.work is EdgeWork.TAIL:
            return self._end_tail(unit, chunk, piece, event)
        chunk.end_head(piece, now_us=now_us)
        if self.holds_body:
            chunk.come_back(now_us=now_us)
            return []
        return [SendPiece(Lane.PREFILL, chunk.number, piece.start, piece.stop, chunk.num_rows)]

    def _end_tail(self, unit: EdgeUnit, chunk: EdgeChunk, piece: Piece, event: UnitEnded) -> list[EdgeEffect]:
        chunk.tailed = piece.stop
        chunk.samples += self.book.take_tokens(piece.rows, unit.draws, event.token_ids)
        if chunk.tailed < chunk.num_rows:
            return []
        done = ChunkDone(chunk.number, tuple(chunk.samples), chunk.away_us)
        return [*self._drop_chunk(chunk.number), Tell(done), *self._close(self.book.settle(done.samples))]

    # ---- decode

    def _begin_turnaround(self, unit: EdgeUnit, now_us: int) -> list[EdgeEffect]:
        step = self.steps.first_back()
        if step is None:
            return self._launch(unit, now_us)
        unit.back, unit.live = step, self.book.live(step.task.rows)
        self._count_skipped(unit, step.task.rows)
        if not any(unit.live):
            return self._end_step_tail(unit, step, UnitEnded(), now_us)
        rows = step.task.rows
        unit.draws = self.book.advance_tails(rows, unit.live)
        return [RunTail(Lane.DECODE, step.number, rows, unit.live, unit.draws, 0, step.num_rows)]

    def _end_step_tail(self, unit: EdgeUnit, step: EdgeStep, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        if event.failure is not None:
            *effects, told = self._take_failure(step, event.failure, unit.stage)
            unit.after.append(told)
            return effects + self._launch(unit, now_us)
        del self.steps.away[step.number]
        unit.samples = self.book.take_tokens(step.task.rows, unit.draws, event.token_ids)
        unit.after += self._close(self.book.settle(unit.samples))
        return [DropUnit(Lane.DECODE, step.number), *self._launch(unit, now_us)]

    def _launch(self, unit: EdgeUnit, now_us: int) -> list[EdgeEffect]:
        """Send the next step off, if one may leave; the turnaround ends with its head, and with a chunk's if fused."""
        unit.tail_us = now_us - self.ledger.since_us
        step = self._step_head(unit) if self._may_launch() else None
        if unit.work is EdgeWork.FUSED:
            piece = self._head(unit)
            return [piece if step is None else RunFusedHead(piece, step)]
        return [step] if step is not None else self._end_turnaround(unit, now_us)

    def _step_head(self, unit: EdgeUnit) -> RunHead:
        rows = self.book.next_rows(
            rows_away=self.steps.rows_away(), max_steps=self.plan.max_steps, max_rows=self.plan.max_batch_size
        )
        unit.next = self.steps.make(rows)
        self._last_was_step = True
        live = (True,) * len(rows)
        tokens = self.book.token_ids(rows, live)
        self.book.advance_heads(rows, live)
        num_rows = unit.next.num_rows
        return RunHead(Lane.DECODE, unit.next.number, rows, live, tokens, 0, num_rows, num_rows)

    def _end_fused(self, unit: EdgeUnit, chunk: EdgeChunk, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        """Both parts of a fused unit end, well or not."""
        effects = self._end_piece(unit, chunk, event, now_us)
        if unit.next is None:
            return [*effects, *self._end_turnaround(unit, now_us)]
        return [*effects, *self._end_step_head(unit, unit.next, event, now_us)]

    def _end_step_head(self, unit: EdgeUnit, step: EdgeStep, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        if event.failure is not None:
            *effects, told = self._take_failure(step, event.failure, unit.stage)
            unit.after.append(told)
            return effects + self._end_turnaround(unit, now_us)
        self.steps.leave(step, now_us=now_us)
        if self.holds_body:
            step.come_back(now_us=now_us)
            return self._end_turnaround(unit, now_us)
        send = SendPiece(Lane.DECODE, step.number, 0, step.num_rows, step.num_rows, step.task.rows)
        return [send, *self._end_turnaround(unit, now_us)]

    def _end_turnaround(self, unit: EdgeUnit, now_us: int) -> list[EdgeEffect]:
        """The next step is on its way; only now tell what the last one sampled."""
        told: list[EdgeEffect] = []
        if unit.back is not None:
            returned_us = unit.back.returned_us or now_us
            told.append(Tell(StepDone(unit.back.number, unit.samples, unit.back.away_us, now_us - returned_us)))
        return [*told, *unit.after, *self._end_unit(unit, now_us)]

    # ---- ends of units

    def _end_run(self, event: UnitEnded, now_us: int) -> list[EdgeEffect]:
        unit = self._unit
        if unit is None:
            raise ProtocolError("a unit ended and none was open")
        unit.sampling_us += event.sampling_us
        if unit.chunk is not None and unit.work is EdgeWork.FUSED:
            return self._end_fused(unit, unit.chunk, event, now_us)
        if unit.chunk is not None:
            return [*self._end_piece(unit, unit.chunk, event, now_us), *self._end_unit(unit, now_us)]
        if unit.next is not None:
            return self._end_step_head(unit, unit.next, event, now_us)
        if unit.back is not None:
            return self._end_step_tail(unit, unit.back, event, now_us)
        raise ProtocolError("a turnaround ended that ran nothing")

    def _end_unit(self, unit: EdgeUnit, now_us: int) -> list[EdgeEffect]:
        begin_us = self.ledger.since_us
        self.ledger.end_unit(now_us=now_us, ran=unit.ran(begin_us=begin_us, end_us=now_us))
        self._unit = None
        self._last = unit.work
        is_prefill = unit.work in (EdgeWork.HEAD, EdgeWork.TAIL)
        self._prefill_run_us = self._prefill_run_us + now_us - begin_us if is_prefill else 0
        self._set_open(now_us)
        deferred, self._deferred = self._deferred, []
        return [effect for release in deferred for effect in self._release(release, now_us)]
