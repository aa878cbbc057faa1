"""Keys and values of all sequences of one side, in blocks.

Each layer has one tensor of keys and one of values over all tokens of all blocks. A sequence owns one contiguous run
of blocks (`edgeweave.kv`), the same in each layer, so attention reads it through a view, head by head in one piece.
Layers may be at different lengths of one sequence: the head of a chunk may run before the tail of the chunk before it.

Knows rows and blocks. Does not know models.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from edgeweave.interleave.nouns import KvCapacity, Row
from edgeweave.kv import BlockTable, Move
from edgeweave.model.attention import AttentionRule
from edgeweave.model.one_core import one_core
from edgeweave.model.ragged import KeysValues, attend_unit
from edgeweave.model.unit_rows import UnitRows


class LayerKv:
    """Keys and values of one layer."""

    def __init__(self, cache: "KvCache", *, kept: KeysValues) -> None:
        self._cache = cache
        self._kept = kept

    @property
    def keys(self) -> Tensor:
        """Keys of all tokens: [kv heads, blocks * block tokens, key dim]."""
        return self._kept.keys

    @property
    def values(self) -> Tensor:
        """Values of all tokens: [kv heads, blocks * block tokens, value dim]."""
        return self._kept.values

    def attend(self, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor:
        """Do what `attend_tokens` does; take [1, heads, tokens, dim] and return [1, tokens, heads, value dim]."""
        queries, keys, values = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
        return self.attend_tokens(queries, keys, values, rule).unsqueeze(0)

    def attend_tokens(self, queries: Tensor, keys: Tensor, values: Tensor, rule: AttentionRule) -> Tensor:
        """Store keys and values of the unit's tokens, then let each row attend to its own sequence.

        Takes [tokens, heads, dim] and returns [tokens, heads, value dim].
        """
        unit = self._cache.unit
        self.keys.index_copy_(1, unit.slots, keys.transpose(0, 1))
        self.values.index_copy_(1, unit.slots, values.transpose(0, 1))
        return attend_unit(queries, self._kept, unit=unit, rule=rule)

    def move(self, move: Move, *, block_tokens: int) -> None:
        """Carry out `move` on the tokens of this layer."""
        source = slice(move.source * block_tokens, (move.source + move.num_blocks) * block_tokens)
        target = slice(move.target * block_tokens, (move.target + move.num_blocks) * block_tokens)
        for tokens in (self.keys, self.values):
            tokens[:, target] = tokens[:, source].clone()  # the ranges may overlap


class KvCache:
    """The layers' keys and values and the table of their blocks.

    `on_one_core` lets the compiled attention of one core take rows of one token, where there is one.
    """

    def __init__(
        self, capacity: KvCapacity, *, device: torch.device, dtype: torch.dtype, on_one_core: bool = False
    ) -> None:
        self.capacity = capacity
        self.table = BlockTable(capacity.num_blocks)
        self.unit = UnitRows.place([], [], device=device)
        self.device = device
        self.dtype = dtype
        self._on_one_core = on_one_core
        self._layers: list[LayerKv] = []

    def add_layer(self, *, kv_heads: int, key_dim: int, value_dim: int) -> LayerKv:
        """Return memory for one more layer."""
        num_tokens = self.capacity.num_blocks * self.capacity.block_tokens
        keys = torch.empty(kv_heads, num_tokens, key_dim, device=self.device, dtype=self.dtype)
        values = torch.empty(kv_heads, num_tokens, value_dim, device=self.device, dtype=self.dtype)
        kept = KeysValues(keys, values, one_core(keys, values) if self._on_one_core else None)
        layer = LayerKv(self, kept=kept)
        self._layers.append(layer)
        return layer

    def begin(self, rows: Sequence[Row]) -> None:
        """Let the unit of `rows` run next: each sequence gets blocks up to its row's `stop`.

        Raises `OutOfBlocksError` where they do not fit.
        """
        for row in rows:
            self._reserve(row)
        bases = [self.table.run_of(row.sequence).start * self.capacity.block_tokens for row in rows]
        self.unit = UnitRows.place(rows, bases, device=self.device)

    def free(self, sequences: Iterable[int]) -> None:
        """Give back the blocks of `sequences`; those that own none are ignored."""
        for sequence in sequences:
            self.table.free(sequence)

    def free_all(self) -> None:
        """Give back all blocks."""
        self.table.free_all()

    def _reserve(self, row: Row) -> None:
        for move in self.table.reserve(row.sequence, self.capacity.blocks_for(row.stop)):
            for layer in self._layers:
                layer.move(move, block_tokens=self.capacity.block_tokens)
