"""The nouns that the cores exchange: rows, chunks, plans, samples, times.

Each is a frozen value. Those that cross a process boundary have a message of the same name in `protos/`, and
`edgeweave.wire` turns one into the other. Enum numbers equal those of the contract. Ranges are half open.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum


class PlanKind(IntEnum):
    """How work is interleaved."""

    SERIAL = 1
    ONE_P_ONE_D = 2
    TWO_P_ONE_D = 3
    ADAPTIVE = 4


class Stage(IntEnum):
    """Which part of the pipeline a unit belongs to."""

    HEAD = 1
    SEGMENT = 2
    TAIL = 3
    STEP = 4
    TURNAROUND = 5
    FUSED_SEGMENT = 6
    FUSED_HEAD = 7
    BOARDING = 8


class Fuse(IntEnum):
    """Whether rows of a step may ride in prefill: where that is predicted to pay, not at all, or whenever both wait."""

    AUTO = 1
    NEVER = 2
    ALWAYS = 3


class BubbleCause(IntEnum):
    """Why an engine with open sequences did not run."""

    GRACE = 1
    AWAIT_TASK = 2
    AWAIT_DECODE_HIDDEN = 3
    AWAIT_PREFILL_HIDDEN = 4
    LINK = 5
    LOST = 6


class ErrorCode(IntEnum):
    """Why a unit failed."""

    OUT_OF_MEMORY = 1
    COMPUTE = 2
    NOT_FINITE = 3


class FinishReason(IntEnum):
    """Why an output ended."""

    STOP = 1
    LENGTH = 2


class Lane(IntEnum):
    """Which lane a frame travels on."""

    PREFILL = 1
    DECODE = 2


class DType(IntEnum):
    """Element type of hidden states on the lanes."""

    FLOAT32 = 1
    BFLOAT16 = 2
    FLOAT16 = 3


@dataclass(frozen=True, slots=True)
class Row:
    """What a chunk or step holds of one sequence: token positions `[start, stop)`."""

    sequence: int
    start: int
    stop: int

    @property
    def num_tokens(self) -> int:
        """Tokens of this row."""
        return self.stop - self.start


def count_tokens(rows: Iterable[Row]) -> int:
    """Return the tokens of all `rows`."""
    return sum([row.stop - row.start for row in rows])


@dataclass(frozen=True, slots=True)
class Segment:
    """Layers `[start, stop)`, run without yielding. Layer 0 is the first of the whole model."""

    start: int
    stop: int

    @property
    def num_layers(self) -> int:
        """Layers of this segment."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Chunk:
    """One prefill batch and its cut; its rows never change once it is issued."""

    chunk: int
    rows: tuple[Row, ...]
    segments: tuple[Segment, ...]
    plan: int
    deadline_ms: int
    num_tokens: int = field(init=False, repr=False, compare=False)
    """Tokens of all rows."""

    def __post_init__(self) -> None:
        """Count the tokens once."""
        object.__setattr__(self, "num_tokens", count_tokens(self.rows))


@dataclass(frozen=True, slots=True)
class Plan:
    """What engines order their work by. Units: microseconds, counts.

    While fewer than `fill_to_rows` sequences are through their prefill, a step waits for prefill that is ready, at most
    `fill_row_us` for each that is missing.

    With `may_fuse` the rows of a step that is ready ride in a chunk that is: in one that has not begun, or in one of
    which `fuse_after_layers` ran, after they ran through the same layers alone.
    """

    plan: int
    kind: PlanKind
    max_prefills: int
    max_steps: int
    max_batch_size: int
    next_head_first: bool = False
    min_segment_us: int = 0
    decode_return_us: int = 0
    max_grace_us: int = 0
    may_fuse: bool = False
    fill_to_rows: int = 0
    fill_row_us: int = 0
    fuse_after_layers: int = 0


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn. Temperature 0 is greedy; `top_k` 0 and `top_p` 1 keep all tokens."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0


GREEDY = Sampling()


@dataclass(frozen=True, slots=True)
class OpenSequence:
    """Creates a sequence on the edge: one attempt at one request."""

    sequence: int
    token_ids: tuple[int, ...]
    num_prompt_tokens: int
    sampling: Sampling
    stop_token_ids: frozenset[int]
    max_tokens: int
    token_limit: int


@dataclass(frozen=True, slots=True)
class ExtendSequence:
    """Raises the KV length that is reserved for a sequence."""

    sequence: int
    token_limit: int


@dataclass(frozen=True, slots=True)
class ReleaseSequences:
    """Frees sequences, between two units."""

    sequences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Released:
    """The KV of these sequences is free on the side that says so."""

    sequences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sampled token; `index` counts output tokens of the request from 0."""

    sequence: int
    index: int
    token_id: int
    finish: FinishReason | None = None


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """The tail of a chunk ran; `samples` are those of rows that ended a prompt."""

    chunk: int
    samples: tuple[Sample, ...]
    away_us: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """The tail of a step ran and the next step is on its way."""

    step: int
    samples: tuple[Sample, ...]
    away_us: int
    turnaround_us: int


@dataclass(frozen=True, slots=True)
class UnitFailed:
    """A unit failed in `stage`; exactly one of `chunk` and `step` is set. Only `sequences` fail with it."""

    sequences: tuple[int, ...]
    code: ErrorCode
    stage: Stage
    chunk: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Rider:
    """The step in a fused unit: what `step` and `ready_us` are in a unit that is not, and how many of its rows ran."""

    step: int | None
    num_rows: int
    num_tokens: int
    ready_us: int | None = None


@dataclass(frozen=True, slots=True)
class UnitRan:
    """One unit that an engine ran; exactly one of `chunk` and `step` is set.

    `start` and `stop` are layers of a segment or step, and tensor rows of a head or tail piece. Times are those of
    the engine's clock. The two flags say what was ready when the unit was chosen. `ready_us` is when all that it works
    on was here, `None` where nothing had to come. A turnaround begins with the tail of `step` for `tail_us`, if that
    came back, and ends with the head of `next_step`, if one left; the last `sampling_us` of a tail drew tokens.

    A fused unit is that of `chunk`, and `rider` is the step whose rows ran with it; counts are those of both. One at
    the edge is a turnaround that ends with a piece of a head and the head of `next_step`, together. A boarding runs a
    step up to the layer of the chunk that it then rides in. `ride_layers` and `step_layers` are layers that
    were over when it was chosen: of the chunk that rows would ride in, and of the step that was ready.
    """

    stage: Stage
    start: int
    stop: int
    begin_us: int
    end_us: int
    prefill_ready: bool
    decode_ready: bool
    num_rows: int
    num_tokens: int
    plan: int
    chunk: int | None = None
    step: int | None = None
    num_skipped: int = 0
    tail_ready: bool = False
    decode_due_us: int | None = None
    prefill_run_us: int = 0
    decode_rows: int = 0
    ready_us: int | None = None
    next_step: int | None = None
    tail_us: int = 0
    sampling_us: int = 0
    rider: Rider | None = None
    ride_layers: int = 0
    step_layers: int = 0

    @property
    def step_part(self) -> Rider:
        """The step of it: the rider of a fused unit, else all that ran."""
        return self.rider or Rider(self.step, self.num_rows, self.num_tokens, self.ready_us)


@dataclass(frozen=True, slots=True)
class Bubble:
    """A span in which an engine had open sequences and ran nothing; its cause was fixed when it ended."""

    begin_us: int
    end_us: int
    cause: BubbleCause


@dataclass(frozen=True, slots=True)
class Timeline:
    """What an engine did since its last report; busy + bubbles + idle is the time between two reports."""

    ran: tuple[UnitRan, ...]
    bubbles: tuple[Bubble, ...]
    idle_us: int
    clock_us: int
    received_bytes: int = 0
    sent_bytes: int = 0
    inside_us: int = 0


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """The KV blocks of one side."""

    block_tokens: int
    num_blocks: int

    def blocks_for(self, num_tokens: int) -> int:
        """Return how many blocks hold `num_tokens`."""
        return -(-num_tokens // self.block_tokens)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What must be equal on both sides before a session serves."""

    model: bytes
    weights: bytes
    head_layers: int
    tail_layers: int
    dtype: DType
    protocol: int


@dataclass(frozen=True, slots=True)
class Attached:
    """The first answer of an engine: what it was built from and can hold.

    Only the edge tells the size of the vocabulary and the longest sequence that the model computes.
    """

    fingerprint: Fingerprint
    kv: KvCapacity
    staging_bytes: int
    clock_us: int
    body: Segment
    token_bytes: int
    vocab_size: int | None = None
    max_positions: int | None = None


@dataclass(frozen=True, slots=True)
class LanesReady:
    """Both lanes are open and warm."""

    rtt_us: int
    prefill_bytes_per_s: int


@dataclass(frozen=True, slots=True)
class StepRows:
    """The rows of a step in tensor order, as its first frame tells them."""

    step: int
    rows: tuple[Row, ...] = ()
    num_tokens: int = field(init=False, repr=False, compare=False)
    """Tokens of all rows."""

    def __post_init__(self) -> None:
        """Count the tokens once."""
        object.__setattr__(self, "num_tokens", count_tokens(self.rows))
