"""The work that is open on the edge: chunks between head and tail, and steps that are away.

Knows how far each chunk and step has come. Does not know sequences, and decides nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from edgeweave.errors import ProtocolError
from edgeweave.interleave.effects import FrameArrived
from edgeweave.interleave.nouns import Chunk, Row, Sample, StepRows
from edgeweave.interleave.rows import rows_between


@dataclass(frozen=True, slots=True)
class Piece:
    """Tensor rows `[start, stop)` of a chunk, and the token rows in them."""

    start: int
    stop: int
    rows: tuple[Row, ...]


@dataclass(slots=True)
class Away:
    """What left for the cloud and comes back. Counts are tensor rows; times are microseconds, `None` until they happen.

    `sent_us` and `returned_us` are this engine's clock, `far_sent_us` the cloud's.
    """

    num_rows: int
    arrived: int = 0
    sent_us: int | None = None
    returned_us: int | None = None
    far_sent_us: int = 0

    @property
    def away_us(self) -> int:
        """From the first frame sent to the last one received."""
        if self.sent_us is None or self.returned_us is None:
            return 0
        return self.returned_us - self.sent_us

    def take(self, frame: FrameArrived, *, now_us: int) -> None:
        """Count what a frame brought back; ProtocolError if it belongs to a unit of another size."""
        if frame.num_rows != self.num_rows:
            raise ProtocolError(
                f"{frame.lane.name.lower()} unit {frame.unit} left with {self.num_rows} rows "
                f"and came back with {frame.num_rows}"
            )
        self.far_sent_us = frame.sent_us
        self.arrived += frame.row_stop - frame.row_start
        if self.arrived == self.num_rows:
            self.returned_us = now_us

    def come_back(self, *, now_us: int) -> None:
        """Be back at once: there is no cloud."""
        self.arrived, self.returned_us = self.num_rows, now_us


class EdgeChunk(Away):
    """A chunk on the edge: how far its head and its tail have come."""

    __slots__ = ("headed", "samples", "tailed", "task")

    def __init__(self, task: Chunk) -> None:
        super().__init__(task.num_tokens)
        self.task = task
        self.headed = 0
        self.tailed = 0
        self.samples: list[Sample] = []

    @property
    def number(self) -> int:
        """The chunk's number."""
        return self.task.chunk

    @property
    def head_is_done(self) -> bool:
        """Whether the head of the whole chunk ran."""
        return self.headed == self.num_rows

    @property
    def is_away(self) -> bool:
        """Whether its head began; it stays away until its tail is done."""
        return self.headed > 0

    def piece(self, start: int, *, max_tokens: int) -> Piece:
        """Return the next piece of at most `max_tokens` rows from `start`."""
        stop = min(start + max_tokens, self.num_rows)
        return Piece(start, stop, rows_between(self.task.rows, start=start, stop=stop))

    def end_head(self, piece: Piece, *, now_us: int) -> None:
        """A piece of the head ran; the first one is sent now."""
        self.headed = piece.stop
        self.sent_us = now_us if self.sent_us is None else self.sent_us

    def come_back(self, *, now_us: int) -> None:
        """Be back at once, when the whole head ran: there is no cloud."""
        if self.head_is_done:
            super().come_back(now_us=now_us)


class EdgeStep(Away):
    """A step that is away."""

    __slots__ = ("task",)

    def __init__(self, task: StepRows) -> None:
        super().__init__(task.num_tokens)
        self.task = task

    @property
    def number(self) -> int:
        """The step's number."""
        return self.task.step


@dataclass(slots=True)
class EdgeChunks:
    """Chunks in issue order. At each stage they run in that order."""

    open: dict[int, EdgeChunk] = field(default_factory=dict)

    def next_head(self) -> EdgeChunk | None:
        """Return the first chunk whose head is not done."""
        return next((chunk for chunk in self.open.values() if not chunk.head_is_done), None)

    def next_tail(self, *, may_overtake: bool) -> EdgeChunk | None:
        """Return the first chunk, if all of it is back; one in which rows rode may have overtaken it."""
        chunks = self.open.values() if may_overtake else islice(self.open.values(), 1)
        return next((chunk for chunk in chunks if chunk.returned_us is not None), None)

    def is_any_away(self) -> bool:
        """Whether any chunk is between its head and its tail."""
        return any(chunk.is_away for chunk in self.open.values())

    def waiting_head(self) -> EdgeChunk | None:
        """Return the next chunk if its head has not begun."""
        chunk = self.next_head()
        return chunk if chunk is not None and not chunk.is_away else None


@dataclass(slots=True)
class EdgeSteps:
    """Steps that are away, oldest first. Their numbers rise and are given here."""

    away: dict[int, EdgeStep] = field(default_factory=dict)
    _last: int = 0

    def make(self, rows: tuple[Row, ...]) -> EdgeStep:
        """Return the next step, of `rows`; it has not left yet."""
        self._last += 1
        return EdgeStep(StepRows(self._last, rows))

    def leave(self, step: EdgeStep, *, now_us: int) -> None:
        """Send `step` off."""
        step.sent_us = now_us
        self.away[step.number] = step

    def first_back(self) -> EdgeStep | None:
        """Return the first step that is back, if any."""
        return next((step for step in self.away.values() if step.returned_us is not None), None)

    @property
    def num_rows_away(self) -> int:
        """How many rows are away."""
        return sum(len(step.task.rows) for step in self.away.values())

    def rows_away(self) -> Iterator[Row]:
        """Yield the rows of all steps that are away."""
        for step in self.away.values():
            yield from step.task.rows
