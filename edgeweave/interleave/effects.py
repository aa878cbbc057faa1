"""What an engine core asks its shell to do, and what a shell tells its core besides the scheduler's messages.

A core returns effects; the shell carries them out in the order given. At most one `Run*` effect is open at a time,
and it is answered by `UnitEnded`. Hidden states stay with the shell: a core counts rows and never sees a tensor.
"""

from dataclasses import dataclass

from edgeweave.interleave.nouns import (
    Chunk,
    ChunkDone,
    ErrorCode,
    Lane,
    Released,
    Row,
    Sampling,
    Segment,
    StepDone,
    StepRows,
    UnitFailed,
)


@dataclass(frozen=True, slots=True)
class FrameArrived:
    """Tensor rows `[row_start, row_stop)` of `num_rows` of a unit arrived on a lane, in one frame or in several.

    `rows` is set on the first frame of a step that goes up; `failed` when the unit failed on the other side.
    `sent_us` is the sender's clock when the unit's first byte was ready. `arrived_us` is this engine's clock when these
    rows were here, `None` where that is when the core hears of it; an engine that runs a unit tells it when that ends.
    """

    lane: Lane
    unit: int
    row_start: int
    row_stop: int
    num_rows: int
    sent_us: int
    rows: tuple[Row, ...] | None = None
    failed: tuple[int, ...] | None = None
    code: ErrorCode | None = None
    arrived_us: int | None = None

    def here_us(self, *, now_us: int) -> int:
        """Return when it was here, for a core that hears of it now."""
        return now_us if self.arrived_us is None else min(self.arrived_us, now_us)


@dataclass(frozen=True, slots=True)
class UnitEnded:
    """The open unit ended: with tokens where it sampled, with a code where it failed.

    The last `sampling_us` of it drew the tokens.
    """

    token_ids: tuple[int, ...] = ()
    failure: ErrorCode | None = None
    sampling_us: int = 0


# ---- effects of the cloud engine


@dataclass(frozen=True, slots=True)
class RunSegment:
    """Run one segment of a chunk. Rows that are not live are left as they are."""

    chunk: Chunk
    segment: Segment
    live: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class RunStep:
    """Run body layers for a step: all of them, or what is left, or those up to a chunk that it then rides in."""

    step: StepRows
    layers: Segment
    live: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class RunFused:
    """Run what is left of the body for a chunk and a step together."""

    chunk: RunSegment
    step: RunStep


@dataclass(frozen=True, slots=True)
class SendResult:
    """Send a unit down its lane, with zeros for rows that are not live, and forget it."""

    lane: Lane
    unit: int
    rows: tuple[Row, ...]
    live: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class SendFailure:
    """Answer a unit on its lane with a failure, and forget it."""

    lane: Lane
    unit: int
    sequences: tuple[int, ...]
    code: ErrorCode


# ---- effects of the edge engine


@dataclass(frozen=True, slots=True)
class RunHead:
    """Run the head for some rows of a chunk or for a step: `[row_start, row_stop)` of `num_rows` tensor rows.

    `rows` and `live` describe just this piece; `token_ids` are those of its live rows, in order.
    """

    lane: Lane
    unit: int
    rows: tuple[Row, ...]
    live: tuple[bool, ...]
    token_ids: tuple[int, ...]
    row_start: int
    row_stop: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class RunFusedHead:
    """Run the head, which is all layers here, for a piece of a chunk and for a step together."""

    piece: RunHead
    step: RunHead


@dataclass(frozen=True, slots=True)
class Draw:
    """One token to draw: from the last token of row `row` of the piece, as output `index`."""

    row: int
    sampling: Sampling
    index: int


@dataclass(frozen=True, slots=True)
class RunTail:
    """Run the tail for some rows that are back, and draw tokens where asked."""

    lane: Lane
    unit: int
    rows: tuple[Row, ...]
    live: tuple[bool, ...]
    draws: tuple[Draw, ...]
    row_start: int
    row_stop: int


@dataclass(frozen=True, slots=True)
class SendPiece:
    """Send `[row_start, row_stop)` of a unit up its lane; `rows` names the rows of a step in its first frame."""

    lane: Lane
    unit: int
    row_start: int
    row_stop: int
    num_rows: int
    rows: tuple[Row, ...] | None = None


# ---- effects of both engines


@dataclass(frozen=True, slots=True)
class FreeKv:
    """Free the KV of these sequences."""

    sequences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DropUnit:
    """Forget a unit: what was staged for it, and what was not yet sent."""

    lane: Lane
    unit: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the scheduler."""

    message: ChunkDone | StepDone | Released | UnitFailed


CloudRun = RunSegment | RunStep | RunFused
EdgeRun = RunHead | RunTail | RunFusedHead
CloudEffect = CloudRun | SendResult | SendFailure | FreeKv | DropUnit | Tell
EdgeEffect = EdgeRun | SendPiece | FreeKv | DropUnit | Tell
RUNS = (RunSegment, RunStep, RunFused, RunHead, RunTail, RunFusedHead)
