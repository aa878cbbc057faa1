"""The work that is open in the cloud: chunks and steps whose frames arrive.

Knows how far each has come, and which frames are early or stale. Does not know sequences, and decides nothing.
"""

from dataclasses import dataclass, field

from edgeweave.errors import ProtocolError
from edgeweave.interleave.effects import FrameArrived
from edgeweave.interleave.nouns import Chunk, Row, Segment, StepRows
from edgeweave.interleave.plans import MAX_IN_FLIGHT


@dataclass(slots=True)
class Arriving:
    """A unit whose frames arrive. Counts are tensor rows; `first_sent_us` is the edge's clock."""

    num_rows: int
    first_sent_us: int = 0
    arrived: int = 0
    complete_us: int | None = None

    def take(self, frame: FrameArrived, *, now_us: int) -> None:
        """Count what a frame brought."""
        self.first_sent_us = frame.sent_us
        self.arrived += frame.row_stop - frame.row_start
        if self.arrived == self.num_rows:
            self.complete_us = now_us

    def inside_us(self, *, now_us: int) -> int:
        """Return how long the whole unit has been here."""
        return now_us - self.complete_us if self.complete_us is not None else 0


class CloudChunk(Arriving):
    """A chunk that was announced: which of its segments is next, and how far into it the last unit came.

    `layer_us` is the measured time of one of its layers, 0 until one has run.
    """

    __slots__ = ("announced_us", "layer_us", "next_layer", "task")

    def __init__(self, task: Chunk, *, announced_us: int) -> None:
        super().__init__(task.num_tokens)
        self.task = task
        self.announced_us = announced_us
        self.next_layer = task.segments[0].start
        self.layer_us = 0.0

    @property
    def num_layers_run(self) -> int:
        """Layers of its body that ran."""
        return self.next_layer - self.task.segments[0].start

    @property
    def sequences(self) -> frozenset[int]:
        """Sequences that have a row in it."""
        return frozenset([row.sequence for row in self.task.rows])

    @property
    def is_done(self) -> bool:
        """Whether the last layer of its body ran."""
        return self.next_layer == self.task.segments[-1].stop

    @property
    def segment_left(self) -> Segment:
        """What is left of the segment that is next."""
        segment = next(each for each in self.task.segments if each.stop > self.next_layer)
        return Segment(self.next_layer, segment.stop)

    @property
    def body_left(self) -> Segment:
        """What is left of its body."""
        return Segment(self.next_layer, self.task.segments[-1].stop)


class CloudStep(Arriving):
    """A step that arrives; its first frame named its rows. `num_layers_run` of its body ran."""

    __slots__ = ("num_layers_run", "task")

    def __init__(self, task: StepRows) -> None:
        super().__init__(task.num_tokens)
        self.task = task
        self.num_layers_run = 0


@dataclass(slots=True)
class CloudChunks:
    """Announced chunks in issue order, and frames that came before their task.

    `max_early_rows` is how many tensor rows staging holds. Chunks that are early are not counted: those that were
    aborted at once are no longer in flight, and their tasks may still be on the way.
    """

    max_early_rows: int = 1 << 20
    open: dict[int, CloudChunk] = field(default_factory=dict)
    early: dict[int, list[FrameArrived]] = field(default_factory=dict)
    _highest: int = 0

    def announce(self, task: Chunk, *, now_us: int) -> list[FrameArrived]:
        """Open a chunk; return the frames of it that are here already."""
        self._highest = max(self._highest, task.chunk)
        self.open[task.chunk] = CloudChunk(task, announced_us=now_us)
        return self.early.pop(task.chunk, [])

    def is_early(self, frame: FrameArrived) -> bool:
        """Whether the task of this frame's chunk has not come yet."""
        return frame.unit > self._highest

    def hold(self, frame: FrameArrived) -> None:
        """Keep an early frame; ProtocolError if the chunks that are early need more than staging holds."""
        self.early.setdefault(frame.unit, []).append(frame)
        num_rows = sum(frames[0].num_rows for frames in self.early.values())
        if num_rows > self.max_early_rows:
            raise ProtocolError(
                f"{len(self.early)} chunks of {num_rows} rows came before their tasks and staging holds "
                f"{self.max_early_rows}; raise staging_bytes"
            )

    def next_ready(self) -> CloudChunk | None:
        """Return the first chunk in issue order, if all of it is here: bodies run in issue order."""
        chunk = next(iter(self.open.values()), None)
        return chunk if chunk is not None and chunk.complete_us is not None else None

    def next_ride(self) -> CloudChunk | None:
        """Return the chunk that rows of a step would ride in: one that has not begun before the one that has.

        It may overtake only chunks of other sequences, so that the tokens of each sequence keep their order.
        """
        first, *others = self.open.values() if self.open else (None,)
        if first is None or first.complete_us is None:
            return None
        if not first.num_layers_run:
            return first
        before = set(first.sequences)
        for chunk in others:
            if chunk.complete_us is not None and before.isdisjoint(chunk.sequences):
                return chunk
            before |= chunk.sequences
        return first


@dataclass(slots=True)
class CloudSteps:
    """Steps that are here or arriving, oldest first."""

    open: dict[int, CloudStep] = field(default_factory=dict)
    _highest: int = 0

    def of(self, frame: FrameArrived) -> CloudStep:
        """Return the step of a frame, opened by its first one.

        Raises:
            ProtocolError: the rows are not named, do not fill the step, or too many steps are here.
        """
        if frame.rows is not None and frame.unit > self._highest:
            self._open(frame, frame.rows)
        step = self.open.get(frame.unit)
        if step is None:
            raise ProtocolError(f"a frame of step {frame.unit} came without the rows of that step")
        return step

    def next_ready(self) -> CloudStep | None:
        """Return the oldest step that is all here, if any."""
        return next((step for step in self.open.values() if step.complete_us is not None), None)

    def _open(self, frame: FrameArrived, rows: tuple[Row, ...]) -> None:
        task = StepRows(frame.unit, rows)
        if task.num_tokens != frame.num_rows:
            raise ProtocolError(f"step {frame.unit} names {task.num_tokens} tokens and has {frame.num_rows} rows")
        if len(self.open) >= MAX_IN_FLIGHT:
            raise ProtocolError(f"step {frame.unit} came while {len(self.open)} steps are here")
        self._highest = frame.unit
        self.open[frame.unit] = CloudStep(task)
