"""What edge and cloud models have in common: facts about the model, and hidden states as bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgeweave.interleave.nouns import DType, Fingerprint, KvCapacity, Row, Segment
from edgeweave.model.cache import KvCache
from edgeweave.model.dtypes import torch_dtype
from edgeweave.model.live_rows import keep_live, spread_live


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model once it is loaded.

    `body` are the layers of the cloud, empty where one side holds all. `max_positions` is the longest sequence that
    the model computes as transformers would, `None` where it has no such limit.
    """

    fingerprint: Fingerprint
    num_layers: int
    body: Segment
    hidden_size: int
    vocab_size: int
    max_positions: int | None
    eos_token_ids: frozenset[int]
    dtype: DType


class Side:
    """A loaded part with its KV: the common half of `EdgeModel` and `CloudModel`."""

    def __init__(self, facts: ModelFacts, cache: KvCache, *, device: torch.device) -> None:
        self.facts = facts
        self.device = device
        self._cache = cache
        self._dtype = torch_dtype(facts.dtype)

    @property
    def fingerprint(self) -> Fingerprint:
        """What this side was built from."""
        return self.facts.fingerprint

    @property
    def body(self) -> Segment:
        """The layers of the cloud, in numbers of the whole model."""
        return self.facts.body

    @property
    def dtype(self) -> DType:
        """Element type of hidden states on the lanes."""
        return self.facts.dtype

    @property
    def num_layers(self) -> int:
        """Layers of the whole model."""
        return self.facts.num_layers

    @property
    def hidden_size(self) -> int:
        """Elements of one token's hidden state."""
        return self.facts.hidden_size

    @property
    def vocab_size(self) -> int:
        """Elements of one row of logits."""
        return self.facts.vocab_size

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Tokens that end an output."""
        return self.facts.eos_token_ids

    @property
    def max_positions(self) -> int | None:
        """The longest sequence in tokens, `None` where the model sets no limit."""
        return self.facts.max_positions

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's hidden state on the lanes."""
        return self.facts.hidden_size * self._dtype.itemsize

    @property
    def kv(self) -> KvCapacity:
        """The blocks of this side."""
        return self._cache.capacity

    @property
    def kv_blocks_used(self) -> int:
        """Blocks that sequences own now."""
        return self._cache.table.num_used

    @property
    def num_moves(self) -> int:
        """How often a sequence's keys and values were moved to make room, since the start."""
        return self._cache.table.num_moves

    def free(self, sequences: Iterable[int]) -> None:
        """Free the KV of `sequences`, between two units; those that own none are ignored."""
        self._cache.free(sequences)

    def free_all(self) -> None:
        """Free the KV of all sequences, between two units: a session that ends leaves nothing."""
        self._cache.free_all()

    def hidden_from(self, payload: bytes | bytearray | memoryview, num_rows: int) -> Tensor:
        """Return `payload`, as it came over a lane, as [num_rows, hidden] on this side's device.

        On the CPU the tensor shares memory with `payload`, which must not change; one that cannot be written to is
        copied.
        """
        if len(payload) != num_rows * self.token_bytes:
            raise ValueError(f"{len(payload)} bytes are not {num_rows} hidden states of {self.token_bytes} bytes")
        writable = bytearray(payload) if memoryview(payload).readonly else payload  # tensors are always writable
        flat = torch.frombuffer(writable, dtype=self._dtype)
        return flat.view(num_rows, self.hidden_size).to(self.device)

    def zeros(self, num_rows: int) -> Tensor:
        """Return hidden states of zeros, [num_rows, hidden]: those of rows that are skipped."""
        return torch.zeros(num_rows, self.hidden_size, dtype=self._dtype, device=self.device)

    def live_of(self, hidden: Tensor, rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
        """Return the tensor rows of `hidden` [tokens, hidden] that are live: [live tokens, hidden]."""
        return keep_live(hidden, rows, live)

    def spread(self, computed: Tensor, rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
        """Return [tokens, hidden] of all rows from `computed` [live tokens, hidden]; zeros for the others."""
        return spread_live(computed, rows, live)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the hidden states of `parts`, each [tokens, hidden], one behind the other."""
        return torch.cat(list(parts))

    def payload_of(self, hidden: Tensor) -> memoryview:
        """Return the bytes of `hidden` [tokens, hidden], little endian, in row order, for a lane."""
        return hidden.contiguous().cpu().view(torch.uint8).numpy().data.cast("B")
