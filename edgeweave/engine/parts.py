"""What a runner asks of its share of a model, real or emulated.

A hidden state is `[tokens, ...]`, whatever it is made of; its first dimension follows the token positions of the rows.
All calls come from the compute thread.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, Self, TypeVar

from edgeweave.interleave.nouns import DType, Fingerprint, KvCapacity, Row, Sampling, Segment


class Hidden(Protocol):
    """Hidden states, or what stands for them."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Self: ...

    def __setitem__(self, rows: slice, value: Self, /) -> None: ...


HiddenT = TypeVar("HiddenT", bound=Hidden)


class Part(Protocol[HiddenT]):
    """The common half of both parts."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What this side was built from."""
        ...

    @property
    def body(self) -> Segment:
        """The layers of the cloud, in numbers of the whole model; empty where one side holds all."""
        ...

    @property
    def dtype(self) -> DType:
        """Element type of hidden states on the lanes."""
        ...

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's hidden state on the lanes."""
        ...

    @property
    def kv(self) -> KvCapacity:
        """The blocks of this side."""
        ...

    def free(self, sequences: Iterable[int]) -> None:
        """Free the KV of `sequences`, between two units; those that own none are ignored."""
        ...

    def free_all(self) -> None:
        """Free the KV of all sequences, between two units."""
        ...

    def hidden_from(self, payload: memoryview, num_rows: int) -> HiddenT:
        """Return `payload`, as it came over a lane, as the hidden states of `num_rows` tokens."""
        ...

    def payload_of(self, hidden: HiddenT) -> memoryview:
        """Return the bytes of `hidden`, little endian, in row order, for a lane."""
        ...

    def zeros(self, num_rows: int) -> HiddenT:
        """Return hidden states of zeros: those of tokens that are skipped."""
        ...

    def live_of(self, hidden: HiddenT, rows: Sequence[Row], live: Sequence[bool]) -> HiddenT:
        """Return the hidden states of the rows that are live, out of those of all rows."""
        ...

    def spread(self, computed: HiddenT, rows: Sequence[Row], live: Sequence[bool]) -> HiddenT:
        """Return the hidden states of all rows, out of those of the rows that are live; zeros for the others."""
        ...

    def join(self, parts: Sequence[HiddenT]) -> HiddenT:
        """Return the hidden states of `parts`, one behind the other."""
        ...


class EdgePart(Part[HiddenT], Protocol):
    """Embedding, head, tail, output head and sampler."""

    @property
    def vocab_size(self) -> int:
        """Tokens there are."""
        ...

    @property
    def max_positions(self) -> int | None:
        """The longest sequence in tokens, `None` where the model sets no limit."""
        ...

    def run_head(self, rows: Sequence[Row], token_ids: Sequence[int]) -> HiddenT:
        """Run embedding and head over the tokens of `rows`, whose ids come in row order."""
        ...

    def run_tail(self, rows: Sequence[Row], hidden: HiddenT, *, final: Sequence[int]) -> Any:
        """Run the tail over `hidden` of all `rows`; return logits of the last token of `rows[i]` for i in `final`."""
        ...

    def sample(self, logits: Any, samplings: Sequence[Sampling], indices: Sequence[int]) -> list[int]:
        """Return a token id for each row of `logits`, drawn as `samplings` say, as tokens `indices` of the outputs."""
        ...


class CloudPart(Part[HiddenT], Protocol):
    """The body."""

    def run_segment(self, rows: Sequence[Row], hidden: HiddenT, segment: Segment) -> HiddenT:
        """Run the layers of `segment`, part of the body, over `hidden`, which may be overwritten."""
        ...


class UnitTime(Protocol):
    """How long a unit takes."""

    def __call__(self, effect: Any, begin_us: int, /) -> AbstractContextManager[None]:
        """Return what the unit of `effect`, which the core began at `begin_us`, runs in."""
        ...


def own_time(_effect: Any, _begin_us: int, /) -> AbstractContextManager[None]:
    """Let a unit take the time that it takes."""
    return nullcontext()
