"""Makes the spans of one session from what the scheduler does and what the engines report.

Knows which request a chunk or a step is traced for, and when all of it was told. Takes events, gives spans to sinks;
no I/O, no clock. A request that is not watched has no spans of its own; the timelines of the engines have all.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Chunk, ChunkDone, Stage, StepDone, Timeline, UnitFailed, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.chunk_spans import chunk_context, chunk_spans
from edgeweave.tracing.engine_spans import EngineTimeline
from edgeweave.tracing.parts import ChunkParts, StepParts
from edgeweave.tracing.site import NUM_REMEMBERED, Site
from edgeweave.tracing.span import Origin, Span, SpanContext
from edgeweave.tracing.step_spans import is_traced, step_context, step_spans

LATE_US = 2_000_000
"""So long after the end of a request the engines have told of all that they did for it: they report every second."""

_BODIES = (Stage.STEP, Stage.BOARDING, Stage.FUSED_SEGMENT)
_TURNAROUNDS = (Stage.TURNAROUND, Stage.FUSED_HEAD)
UNANSWERED = "the session ended before it was answered"
Sink = Callable[[Span], None]
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Sinks:
    """Who takes spans: those of what was done for requests, and those of the engines' timelines."""

    requests: Sink
    timelines: Sink

    @classmethod
    def one(cls, sink: Sink) -> "Sinks":
        """Return `sink` for both."""
        return cls(sink, sink)


@dataclass(slots=True)
class TracedRequest:
    """A request whose spans are wanted, below `root`. `is_queued` until its first chunk goes out."""

    root: SpanContext
    arrived_us: int
    is_queued: bool = True
    num_steps: int = 0
    num_steps_traced: int = 0


@dataclass(slots=True)
class SessionTracer:
    """The spans of one session. Times that come in are the scheduler's clock, those of reports the engines'."""

    site: Site
    sinks: Sinks
    _sequences: dict[int, TracedRequest] = field(default_factory=dict)
    _chunks: dict[int, ChunkParts] = field(default_factory=dict)
    _chunk_roots: dict[int, tuple[SpanContext, ...]] = field(default_factory=dict)
    _steps: dict[int, StepParts] = field(default_factory=dict)
    _step_roots: dict[int, tuple[SpanContext, ...]] = field(default_factory=dict)
    _engines: dict[Side, EngineTimeline] = field(default_factory=dict)

    def open(self, sequence: int, traced: TracedRequest) -> None:
        """A sequence was opened for a request that is traced."""
        self._sequences[sequence] = traced

    def leave(self, traced: TracedRequest) -> None:
        """A request is over; what is still told of it finds its spans by the chunks and steps that it was in."""
        for number in [number for number, each in self._sequences.items() if each is traced]:
            del self._sequences[number]

    def issue(self, chunk: Chunk, *, now_us: int) -> None:
        """A chunk went out to both engines: the queue of whoever is in it for the first time is over."""
        traced = {id(each): each for row in chunk.rows if (each := self._sequences.get(row.sequence)) is not None}
        for each in traced.values():
            self._end_queue(each, now_us)
        self._chunks[chunk.chunk] = ChunkParts(chunk, now_us)
        _remember(self._chunk_roots, chunk.chunk, tuple(each.root for each in traced.values()))

    def chunk_done(self, done: ChunkDone, *, now_us: int) -> None:
        """A chunk was answered."""
        parts = self._chunks.get(done.chunk)
        if parts is not None:
            parts.answered_us = now_us
            self._tell_chunk(parts)

    def step_done(self, done: StepDone, *, now_us: int) -> None:
        """A step was answered: with a token for each of its rows."""
        parts = self._step(done.step)
        parts.answered_us = now_us
        self._remember_step(done.step, (sample.sequence for sample in done.samples))
        self._tell_step(parts)

    def failed(self, failed: UnitFailed, *, now_us: int) -> None:
        """A unit failed, and its chunk or step with it."""
        error = f"{failed.stage.name.lower()} failed: {failed.code.name.lower()}"
        if failed.chunk is not None and failed.chunk in self._chunks:
            chunk = self._chunks[failed.chunk]
            chunk.answered_us, chunk.error = now_us, error
        elif failed.step is not None:
            step = self._step(failed.step)
            step.answered_us, step.error = now_us, error
            self._remember_step(failed.step, failed.sequences)

    def report(self, side: Side, timeline: Timeline, *, now_us: int) -> None:
        """An engine told what it did."""
        self.site.clocks.take_report(side, clock_us=timeline.clock_us, now_us=now_us)
        for ran in timeline.ran:
            self._take(ran)
        engine = self._engines.setdefault(side, EngineTimeline(side, self.site))
        for span in engine.take(timeline, self._belongs_to):
            self.sinks.timelines(span)
        for ran in timeline.ran:
            self._tell(ran)
        self._forget_late(now_us)

    def end(self) -> None:
        """The session is over: tell what is known of what did not come to its end."""
        for engine in self._engines.values():
            for span in engine.end(self._belongs_to):
                self.sinks.timelines(span)
        for parts in list(self._chunks.values()):
            if parts.answered_us is None:
                parts.error = parts.error or UNANSWERED
            self._tell_chunk(parts, is_over=True)
        for step in list(self._steps.values()):
            self._tell_step(step, is_over=True)

    # ---- what units belong to

    def _take(self, ran: UnitRan) -> None:
        """Put a unit to those of its chunk or step."""
        chunk = self._chunks.get(ran.chunk) if ran.chunk is not None else None
        if chunk is not None:
            chunk.add(ran)
        step = ran.step_part.step
        if ran.stage in _BODIES and step is not None:
            self._step(step).bodies.append(ran)
        elif ran.stage in _TURNAROUNDS:
            self._take_turnaround(ran)

    def _take_turnaround(self, ran: UnitRan) -> None:
        """A turnaround ends one step and begins the next; one that only launches has no step that came back."""
        if ran.next_step is not None:
            self._step(ran.next_step).launch = ran
        step = ran.step_part.step
        if step is not None and step != ran.next_step:
            self._step(step).back = ran

    def _step(self, number: int) -> StepParts:
        if number not in self._steps:
            _remember(self._steps, number, StepParts(number))
        return self._steps[number]

    def _remember_step(self, number: int, sequences: Iterable[int]) -> None:
        """Keep where the spans of a step belong: to the requests of its sequences, as far as they trace this one."""
        roots = (self._counted(sequence) for sequence in sequences)
        _remember(self._step_roots, number, tuple(root for root in roots if root is not None))

    def _belongs_to(self, ran: UnitRan) -> tuple[SpanContext, ...]:
        chunk, step = ran.chunk, ran.step_part.step
        chunks = [chunk_context(root, chunk) for root in self._chunk_roots.get(chunk, ())] if chunk is not None else []
        steps = [step_context(root, step) for root in self._step_roots.get(step, ())] if step is not None else []
        return (*chunks, *steps)

    def _counted(self, sequence: int) -> SpanContext | None:
        """Count a step of a sequence's request; return where its span belongs, if this one is traced."""
        traced = self._sequences.get(sequence)
        if traced is None:
            return None
        index, traced.num_steps = traced.num_steps, traced.num_steps + 1
        if not is_traced(index):
            return None
        traced.num_steps_traced += 1
        return traced.root

    # ---- telling

    def _tell(self, ran: UnitRan) -> None:
        """Tell of what this unit completes."""
        if ran.chunk is not None and ran.chunk in self._chunks:
            self._tell_chunk(self._chunks[ran.chunk])
        for number in {ran.step_part.step, ran.next_step}:
            if number is not None and number in self._steps:
                self._tell_step(self._steps[number])

    def _tell_chunk(self, parts: ChunkParts, *, is_over: bool = False) -> None:
        if not (is_over or parts.is_complete):
            return
        number = parts.chunk.chunk
        del self._chunks[number]
        for span in chunk_spans(parts, self._chunk_roots.get(number, ()), self.site):
            self.sinks.requests(span)

    def _tell_step(self, parts: StepParts, *, is_over: bool = False) -> None:
        if not (is_over or parts.is_complete(holds_body=self.site.holds_body)):
            return
        self._observe_trip(parts)
        del self._steps[parts.number]
        for span in step_spans(parts, self._step_roots.get(parts.number, ()), self.site):
            self.sinks.requests(span)

    def _observe_trip(self, parts: StepParts) -> None:
        """Let the clocks learn from a step that went round."""
        launch, bodies, back = parts.launch, parts.bodies, parts.back
        if launch is None or not bodies or back is None:
            return
        arrived_us, returned_us = bodies[0].step_part.ready_us, back.step_part.ready_us
        if arrived_us is not None and returned_us is not None:
            self.site.clocks.take_trip(
                sent_us=launch.end_us, arrived_us=arrived_us, answered_us=bodies[-1].end_us, returned_us=returned_us
            )

    def _end_queue(self, traced: TracedRequest, now_us: int) -> None:
        if not traced.is_queued:
            return
        traced.is_queued = False
        begin_us, end_us = self.site.here(traced.arrived_us), self.site.here(now_us)
        attributes = {Attribute.WAITING_US: now_us - traced.arrived_us}
        context = traced.root.child("queue")
        queue = Span(SpanName.QUEUE, context, traced.root, Origin.SCHEDULER, begin_us, end_us, attributes)
        self.sinks.requests(queue)

    def _forget_late(self, now_us: int) -> None:
        """Tell of what will not be completed: its sequences were released, or an engine skipped it."""
        for parts in [parts for parts in self._chunks.values() if self._is_late(parts, now_us)]:
            self._tell_chunk(parts, is_over=True)
        for step in [step for step in self._steps.values() if _is_answered_late(step.answered_us, now_us)]:
            self._tell_step(step, is_over=True)

    def _is_late(self, parts: ChunkParts, now_us: int) -> bool:
        """Whether a chunk was answered long ago, or none of its sequences is open and it was issued long ago."""
        if parts.answered_us is not None:
            return now_us > parts.answered_us + LATE_US
        is_left = not any(row.sequence in self._sequences for row in parts.chunk.rows)
        return is_left and now_us > parts.issued_us + LATE_US


def _remember(kept: dict[int, ValueT], number: int, value: ValueT) -> None:
    """Keep what is known of a unit as long as reports of it may come; some are never answered, such as failed ones."""
    kept[number] = value
    if len(kept) > NUM_REMEMBERED:
        del kept[next(iter(kept))]


def _is_answered_late(answered_us: int | None, now_us: int) -> bool:
    return answered_us is not None and now_us > answered_us + LATE_US
