"""What emulated edge and cloud have in common: digests in rows of bytes, and the pass through layers.

A row of hidden state is `[words]`, the first two its digest, the others zeros: as many bytes as the profile says.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeweave.emulated.facts import EmulatedFacts
from edgeweave.emulated.layers import LayerMaps, LayerNumbers
from edgeweave.emulated.mixing import Words, mix_words, places
from edgeweave.emulated.sums import SequenceSums, UnitTokens
from edgeweave.interleave.nouns import DType, Fingerprint, KvCapacity, Row, Segment

_WORD = np.dtype("<u8")


class EmulatedSide:
    """One side of an emulated model. All calls come from one thread."""

    def __init__(self, facts: EmulatedFacts, kv: KvCapacity) -> None:
        self.facts = facts
        num_layers = facts.profile.num_layers
        self._maps = LayerMaps(LayerNumbers.of(num_layers))
        self._tokens_column, self._ends_column = num_layers, num_layers + 1
        self._sums = SequenceSums(kv, num_columns=num_layers + 2)

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
        return DType.BFLOAT16

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's hidden state on the lanes."""
        return self.facts.profile.token_bytes

    @property
    def kv(self) -> KvCapacity:
        """The blocks of this side."""
        return self._sums.capacity

    @property
    def kv_blocks_used(self) -> int:
        """Blocks that sequences own now."""
        return self._sums.table.num_used

    def free(self, sequences: Iterable[int]) -> None:
        """Free the KV of `sequences`; those that own none are ignored."""
        self._sums.free(sequences)

    def free_all(self) -> None:
        """Free the KV of all sequences."""
        self._sums.free_all()

    def hidden_from(self, payload: bytes | bytearray | memoryview, num_rows: int) -> Words:
        """Return `payload`, as it came over a lane, as [num_rows, words]; memory that cannot be written is copied."""
        if len(payload) != num_rows * self.token_bytes:
            raise ValueError(f"{len(payload)} bytes are not {num_rows} hidden states of {self.token_bytes} bytes")
        writable = bytearray(payload) if memoryview(payload).readonly else payload
        return np.frombuffer(writable, dtype=_WORD).reshape(num_rows, self.facts.words_per_row)

    def payload_of(self, hidden: Words) -> memoryview:
        """Return the bytes of `hidden` [tokens, words], in row order, for a lane."""
        return np.ascontiguousarray(hidden, dtype=_WORD).view(np.uint8).data.cast("B")

    def zeros(self, num_rows: int) -> Words:
        """Return hidden states of zeros, [num_rows, words]: those of rows that are skipped."""
        return np.zeros((num_rows, self.facts.words_per_row), dtype=_WORD)

    def live_of(self, hidden: Words, rows: Sequence[Row], live: Sequence[bool]) -> Words:
        """Return the tensor rows of `hidden` [tokens, words] that are live."""
        return hidden if all(live) else hidden[_live_mask(rows, live)]

    def spread(self, computed: Words, rows: Sequence[Row], live: Sequence[bool]) -> Words:
        """Return [tokens, words] of all rows from `computed` [live tokens, words]; zeros for the others."""
        if all(live):
            return computed
        mask = _live_mask(rows, live)
        result = self.zeros(len(mask))
        result[mask] = computed
        return result

    def join(self, parts: Sequence[Words]) -> Words:
        """Return the hidden states of `parts`, each [tokens, words], one behind the other."""
        return np.concatenate(parts)

    def _pass_layers(self, tokens: UnitTokens, digests: Words, layers: Segment) -> Words:
        """Return digests [tokens, 2] of a unit after `layers`."""
        if not layers.num_layers:
            return digests
        y, w = self._maps.taken_back(digests, layer=layers.start)
        gains = self._maps.gains(layers.start, layers.stop)
        z = mix_words(y + places(tokens.positions))
        w += self._sums.pass_layers(tokens, z, start=layers.start, gains=gains)
        return self._maps.put(y, w, layer=layers.stop)


def _live_mask(rows: Sequence[Row], live: Sequence[bool]) -> NDArray[np.bool_]:
    return np.repeat(np.array(live, dtype=np.bool_), [row.num_tokens for row in rows])
