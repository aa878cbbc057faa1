"""The work that is open on the edge: chunks between head and tail, and steps that are away.

Knows how far each chunk and step has come. Does not know sequences, and decides nothing.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.nouns import Chunk, Row, Sample, StepRows
from edgeweave.interleave.rows import rows_between


@dataclass(frozen=True, slots=True)
class Piece:
    """Tensor rows `[start, stop)` of a chunk, and the token rows in them."""

    start: int
    stop: int
    rows: tuple[Row, ...]


@dataclass(slots=True)
class EdgeChunk:
    """A chunk on the edge. Counts are tensor rows; times are microseconds, `None` until they happen."""

    task: Chunk
    headed: int = 0
    arrived: int = 0
    tailed: int = 0
    sent_us: int | None = None
    returned_us: int | None = None
    far_sent_us: int = 0
    samples: list[Sample] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        """Tensor rows of the chunk."""
        return self.task.num_tokens

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


@dataclass(slots=True)
class EdgeChunks:
    """Chunks in issue order. At each stage they run in that order."""

    open: dict[int, EdgeChunk] = field(default_factory=dict)

    def next_head(self) -> EdgeChunk | None:
        """Return the first chunk whose head is not done."""
        return next((chunk for chunk in self.open.values() if not chunk.head_is_done), None)

    def next_tail(self) -> EdgeChunk | None:
        """Return the first chunk, if all of it is back."""
        chunk = next(iter(self.open.values()), None)
        return chunk if chunk is not None and chunk.returned_us is not None else None

    def is_any_away(self) -> bool:
        """Whether any chunk is between its head and its tail."""
        return any(chunk.is_away for chunk in self.open.values())

    def waiting_head(self) -> EdgeChunk | None:
        """Return the next chunk if its head has not begun."""
        chunk = self.next_head()
        return chunk if chunk is not None and not chunk.is_away else None


@dataclass(slots=True)
class EdgeStep:
    """A step that is away. It is back when all rows arrived."""

    task: StepRows
    arrived: int = 0
    sent_us: int = 0
    returned_us: int | None = None
    far_sent_us: int = 0

    @property
    def num_rows(self) -> int:
        """Tensor rows of the step."""
        return self.task.num_tokens
