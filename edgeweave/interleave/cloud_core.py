"""The core of the cloud engine: which segment or step runs next, and whose KV is open.

Knows chunks, steps, sequence lengths and time; decides by `choices.next_unit`. Does not know tensors, streams,
token ids or the model: the shell stages hidden states and runs what the core returns. One core serves one session.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from edgeweave.errors import ProtocolError
from edgeweave.interleave.choices import CloudView, Wait, Work, next_unit, prefill_turn_us, rides
from edgeweave.interleave.cloud_sequences import CloudSequence, CloudSequences
from edgeweave.interleave.cloud_unit import CloudUnit
from edgeweave.interleave.cloud_work import CloudChunk, CloudChunks, CloudStep, CloudSteps
from edgeweave.interleave.effects import (
    CloudEffect,
    CloudRun,
    DropUnit,
    FrameArrived,
    FreeKv,
    RunFused,
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
    PlanKind,
    Released,
    ReleaseSequences,
    Segment,
    Timeline,
)
from edgeweave.interleave.trips import CleanTrips

CloudEvent = Chunk | ReleaseSequences | Plan | FrameArrived | UnitEnded

LEAST_PIECE_US = 2000
"""So long prefill runs in one piece although a step is due sooner, or late: a unit has a cost of its own, some tenths
of a millisecond in which hands change, and thin layers in units of their own would take twice their time. A step that
is here waits for no more than its plan says."""


@dataclass(slots=True)
class CloudCore:
    """One session of the cloud engine. Times are microseconds of the engine's clock."""

    body: Segment
    plan: Plan
    ledger: Ledger
    book: CloudSequences = field(default_factory=CloudSequences)
    chunks: CloudChunks = field(default_factory=CloudChunks)
    steps: CloudSteps = field(default_factory=CloudSteps)
    num_skipped: int = 0
    inside_us: int = 0
    _last: Work | None = None
    _before_last: Work | None = None
    _dues_us: deque[int] = field(default_factory=deque)
    _grace_from_us: int | None = None
    _prefill_run_us: int = 0
    _layer_token_us: float = 0.0
    _unit: CloudUnit | None = None
    _deferred: list[ReleaseSequences] = field(default_factory=list)
    _trips: CleanTrips = field(default_factory=CleanTrips)

    @property
    def sequences(self) -> dict[int, CloudSequence]:
        """Sequences whose KV is open here, by number."""
        return self.book.open

    @property
    def is_running(self) -> bool:
        """Whether a unit is open."""
        return self._unit is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of any sequence is left here."""
        return not (self.book.open or self.chunks.open or self.chunks.early or self.steps.open or self._unit)

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
        if self._unit is not None:
            return []
        view = self._view(now_us)
        choice = next_unit(view, self.plan)
        if not isinstance(choice, Work):
            self._note_wait(choice, now_us)
            return []
        chunk, step = self._chunk_for(choice), self.steps.next_ready()
        self.ledger.begin_unit(now_us=now_us, ending=self._ending(choice, chunk, step))
        self._grace_from_us = None
        effect = self._begin(choice, view, chunk, step)
        ready_us = [arriving.complete_us if arriving is not None else None for arriving in (chunk, step)]
        self._unit = CloudUnit(choice, effect, view, self.plan.plan, self.body, *ready_us)
        return [effect]

    def wake_us(self, *, now_us: int) -> int | None:
        """Return when `poll` may have something to run although no event came; `None`: never.

        A wait that ended since the last `poll` is due now.
        """
        if self._unit is not None:
            return None
        choice = next_unit(self._view(now_us), self.plan)
        if isinstance(choice, Wait):
            return choice.until_us
        return now_us if choice is not None else None

    def take_timeline(self, *, now_us: int) -> Timeline:
        """Return what the engine did since the last call."""
        timeline = self.ledger.take(now_us=now_us)
        inside_us, self.inside_us = self.inside_us, 0
        return Timeline(timeline.ran, timeline.bubbles, timeline.idle_us, now_us, inside_us=inside_us)

    # ---- events

    def _announce(self, task: Chunk, now_us: int) -> list[CloudEffect]:
        self.book.create(task.rows)
        self._set_open(now_us)
        held = self.chunks.announce(task, now_us=now_us)
        return [effect for frame in held for effect in self._take_chunk_frame(frame, now_us)]

    def _take_frame(self, frame: FrameArrived, now_us: int) -> list[CloudEffect]:
        here_us = frame.here_us(now_us=now_us)
        self._trips.observe(frame, now_us=here_us)
        if frame.lane is Lane.PREFILL:
            return self._hold_early(frame) if self.chunks.is_early(frame) else self._take_chunk_frame(frame, here_us)
        self.steps.of(frame).take(frame, now_us=here_us)
        return []

    def _hold_early(self, frame: FrameArrived) -> list[CloudEffect]:
        self.chunks.hold(frame)
        return []

    def _take_chunk_frame(self, frame: FrameArrived, now_us: int) -> list[CloudEffect]:
        chunk = self.chunks.open.get(frame.unit)
        if chunk is None:
            return [DropUnit(Lane.PREFILL, frame.unit)]
        if frame.num_rows != chunk.num_rows:
            raise ProtocolError(f"chunk {frame.unit} has {chunk.num_rows} tokens, its frame says {frame.num_rows} rows")
        chunk.take(frame, now_us=now_us)
        return []

    def _release(self, event: ReleaseSequences, now_us: int) -> list[CloudEffect]:
        if self._unit is not None:
            self._deferred.append(event)  # KV is freed between two units, never under one
            return []
        freed = self.book.release(event.sequences)
        effects: list[CloudEffect] = [FreeKv(freed)] if freed else []
        for number in [n for n, chunk in self.chunks.open.items() if not any(self.book.live(chunk.task.rows))]:
            effects += self._drop(number)
        self._set_open(now_us)
        if not self.book.any_decodes:
            self._dues_us.clear()  # nothing that decodes is left: no step is on its way
        return [*effects, Tell(Released(event.sequences))]

    def _drop(self, number: int) -> list[CloudEffect]:
        del self.chunks.open[number]
        return [DropUnit(Lane.PREFILL, number)]

    def _set_open(self, now_us: int) -> None:
        self.ledger.set_open(is_open=bool(self.book.open), now_us=now_us)

    # ---- choosing

    def _view(self, now_us: int) -> CloudView:
        ride, step = self._ride(), self.steps.next_ready()
        return CloudView(
            now_us=now_us,
            prefill_ready=ride is not None,
            decode_ready=step is not None,
            last=self._last,
            before_last=self._before_last,
            decode_due_us=self._decode_due_us,
            prefill_run_us=self._prefill_run_us,
            decode_rows=self._decode_rows(),
            ride_layers=ride.num_layers_run if ride is not None else 0,
            step_layers=step.num_layers_run if step is not None else 0,
        )

    def _ride(self) -> CloudChunk | None:
        """Return the chunk that the step which is ready would ride in, or rides in once it has begun."""
        step = self.steps.next_ready()
        return self.chunks.next_ready() if step is not None and step.num_layers_run else self.chunks.next_ride()

    def _chunk_for(self, choice: Work) -> CloudChunk | None:
        return self.chunks.next_ready() if choice is Work.PREFILL else self._ride()

    @property
    def _decode_due_us(self) -> int | None:
        """When the first of the steps that are on their way is expected."""
        return self._dues_us[0] if self._dues_us else None

    def _decode_rows(self) -> int:
        """Return how many sequences are through their prefill: what is open and has no row in a chunk that is here."""
        prefilling = {row.sequence for chunk in self.chunks.open.values() for row in chunk.task.rows}
        return len(self.book.open) - sum(number in self.book.open for number in prefilling)

    def _note_wait(self, choice: Wait | None, now_us: int) -> None:
        if choice is None:
            self._grace_from_us = None
        elif self._grace_from_us is None:
            self._grace_from_us = now_us

    def _ending(self, choice: Work, chunk: CloudChunk | None, step: CloudStep | None) -> Ending:
        """Return what a bubble before this unit was: a wait for hidden states, for those that came last."""
        if chunk is None or choice is Work.DECODE or (choice is Work.FUSED and _came_last(step, chunk)):
            sent_us = step.first_sent_us if step is not None else 0
            arrival_us = self._trips.clean_arrival_us(Lane.DECODE, sent_us=sent_us)
            return Ending(BubbleCause.AWAIT_DECODE_HIDDEN, None, arrival_us, self._grace_from_us)
        arrival_us = self._trips.clean_arrival_us(Lane.PREFILL, sent_us=chunk.first_sent_us)
        # While a step is on its way, the scheduler owes nothing: only without one is the time before its task its own.
        announced_us = chunk.announced_us if self._decode_due_us is None else None
        return Ending(BubbleCause.AWAIT_PREFILL_HIDDEN, announced_us, arrival_us, self._grace_from_us)

    def _begin(self, choice: Work, view: CloudView, chunk: CloudChunk | None, step: CloudStep | None) -> CloudRun:
        if chunk is not None and choice is Work.PREFILL:
            return self._begin_segment(chunk, self._next_piece(chunk, view.now_us))
        if step is not None and choice is Work.DECODE:
            stop = chunk.next_layer if chunk is not None and rides(view, self.plan) else self.body.stop
            return self._begin_step(step, stop=stop)
        if chunk is None or step is None:
            raise ProtocolError(f"{choice.value} was chosen and is not ready")
        segment = self._begin_segment(chunk, chunk.body_left)
        return RunFused(segment, self._begin_step(step, stop=self.body.stop))

    def _begin_segment(self, chunk: CloudChunk, segment: Segment) -> RunSegment:
        live = self.book.live(chunk.task.rows)
        self.num_skipped += live.count(False)
        if not chunk.num_layers_run:
            self.book.advance(chunk.task.rows, live)
        return RunSegment(chunk.task, segment, live)

    def _next_piece(self, chunk: CloudChunk, now_us: int) -> Segment:
        """Return the layers to run without yielding: the cut of a fixed plan, or as many as the plan's time takes.

        Under an adaptive plan the engine may yield after any layer once prefill had its turn and a step is here, and
        in short pieces while one is due. Until then it runs on in one piece if the time of a layer is known, and while
        no step is on its way in any case.
        """
        left = chunk.segment_left
        if self.plan.kind is not PlanKind.ADAPTIVE:
            return left
        layer_us = chunk.layer_us or self._layer_token_us * chunk.num_rows
        step_is_here, due_us = self.steps.next_ready() is not None, self._decode_due_us
        if due_us is None and not step_is_here:
            return left
        run_us: float = prefill_turn_us(self._decode_rows(), self.plan) - self._prefill_run_us
        if not step_is_here and due_us is not None:
            run_us = max(run_us, due_us - now_us, LEAST_PIECE_US)
        num_layers = math.ceil(run_us / layer_us) if layer_us else 1
        return Segment(left.start, min(left.stop, left.start + max(1, num_layers)))

    def _begin_step(self, step: CloudStep, *, stop: int) -> RunStep:
        live = self.book.live(step.task.rows)
        self.num_skipped += live.count(False)
        if not step.num_layers_run:
            self.book.advance(step.task.rows, live)
            if self._dues_us:
                self._dues_us.popleft()
        return RunStep(step.task, Segment(self.body.start + step.num_layers_run, stop), live)

    # ---- ends of units

    def _end_unit(self, event: UnitEnded, now_us: int) -> list[CloudEffect]:
        if self._unit is None:
            raise ProtocolError("a unit ended and none was open")
        unit, self._unit = self._unit, None
        begin_us = self.ledger.since_us
        self.ledger.end_unit(now_us=now_us, ran=unit.ran(begin_us=begin_us, end_us=now_us))
        self._before_last, self._last = self._last, unit.work
        self._prefill_run_us = self._prefill_run_us + now_us - begin_us if unit.work is Work.PREFILL else 0
        if isinstance(unit.effect, RunSegment):
            self._note_layers(unit.effect, ran_us=now_us - begin_us)
        effects = self._end_segment(unit.segment, event, now_us) if unit.segment is not None else []
        effects += self._end_step(unit.step, event, now_us) if unit.step is not None else []
        deferred, self._deferred = self._deferred, []
        return [*effects, *(effect for release in deferred for effect in self._release(release, now_us))]

    def _end_step(self, effect: RunStep, event: UnitEnded, now_us: int) -> list[CloudEffect]:
        number, rows = effect.step.step, effect.step.rows
        if event.failure is None and effect.layers.stop < self.body.stop:
            self.steps.open[number].num_layers_run += effect.layers.num_layers
            return []  # the rest rides in the chunk that is there
        self.inside_us += self.steps.open.pop(number).inside_us(now_us=now_us)
        self.book.start_decode(rows)
        if any(effect.live):
            self._dues_us.append(now_us + self.plan.decode_return_us)
        while len(self._dues_us) > self.plan.max_steps:
            self._dues_us.popleft()  # fewer steps are in flight than before: one of them will not come
        if event.failure is not None:
            return [SendFailure(Lane.DECODE, number, self.book.fail(rows, effect.live), event.failure)]
        return [SendResult(Lane.DECODE, number, rows, effect.live)]

    def _note_layers(self, effect: RunSegment, *, ran_us: int) -> None:
        """Learn what layers of prefill take from a segment that ran by itself, the cost of the unit included.

        So a short piece makes layers look longer, and the next piece rather too short than too long.
        """
        chunk = self.chunks.open[effect.chunk.chunk]
        chunk.layer_us = ran_us / effect.segment.num_layers
        self._layer_token_us = chunk.layer_us / chunk.num_rows

    def _end_segment(self, effect: RunSegment, event: UnitEnded, now_us: int) -> list[CloudEffect]:
        number, rows = effect.chunk.chunk, effect.chunk.rows
        chunk = self.chunks.open[number]
        chunk.next_layer = effect.segment.stop
        if event.failure is None and not chunk.is_done:
            return []
        self.inside_us += self.chunks.open.pop(number).inside_us(now_us=now_us)
        if event.failure is not None:
            return [SendFailure(Lane.PREFILL, number, self.book.fail(rows, effect.live), event.failure)]
        return [SendResult(Lane.PREFILL, number, rows, effect.live)]


def _came_last(step: CloudStep | None, chunk: CloudChunk) -> bool:
    """Whether a step was here after the chunk that it would ride in."""
    return step is not None and (step.complete_us or 0) >= (chunk.complete_us or 0)
