"""The rows of the unit that runs now, as attention needs them.

Knows where each row's tokens lie in the packed tensors and where its sequence's keys and values lie in the cache.
Built once a unit, used by each of its layers. Does not know layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgeweave.interleave.nouns import Row
from edgeweave.model.bands import Bands
from edgeweave.model.placed_row import PlacedRow


@dataclass(frozen=True, slots=True)
class SingleRows:
    """The rows of one token of a unit, for what takes them all at once: arrays [rows] int64 over numbers of tokens.

    Row i is token `tokens[i]` of the unit; its sequence begins at token `bases[i]` of the cache, and what it sees ends
    at token `stops[i]` there.
    """

    tokens: NDArray[np.int64]
    bases: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[PlacedRow]) -> "SingleRows":
        """Return `rows` as arrays."""
        numbers = np.array([(row.packed_start, row.base, row.base + row.stop) for row in rows], dtype=np.int64)
        tokens, bases, stops = numbers.T.copy()
        return cls(tokens, bases, stops)

    def first_keys(self, window: int | None) -> NDArray[np.int64]:
        """Return the first token of the cache that each row sees."""
        return self.bases if window is None else np.maximum(self.bases, self.stops - window)


@dataclass
class UnitRows:
    """All rows of a unit in packed order, `rows` of several tokens and `singles` of one, and what its layers share."""

    rows: tuple[PlacedRow, ...]
    singles: tuple[PlacedRow, ...]
    device: torch.device
    slots: Tensor  # [tokens] int64: where in the cache each token's key and value go
    _masks: dict[tuple[int, int, int, int | None], Tensor] = field(default_factory=dict)

    @classmethod
    def place(cls, rows: Sequence[Row], bases: Sequence[int], *, device: torch.device) -> "UnitRows":
        """Return `rows` placed behind each other, row i of a sequence whose keys begin at `bases[i]` of the cache."""
        placed = []
        packed = 0
        for row, base in zip(rows, bases, strict=True):
            placed.append(PlacedRow(row.start, row.stop, packed, packed + row.num_tokens, base))
            packed += row.num_tokens
        slots = _ranges([(row.base + row.start, row.base + row.stop) for row in placed])
        long = tuple(row for row in placed if row.num_tokens != 1)
        return cls(long, tuple(row for row in placed if row.num_tokens == 1), device, slots.to(device))

    @cached_property
    def table(self) -> SingleRows:
        """The rows of one token as arrays; there is at least one."""
        return SingleRows.of(self.singles)

    @cached_property
    def bands(self) -> Bands:
        """The rows of one token in as few bands as they allow."""
        return Bands.of(self.singles, device=self.device)

    def mask(self, row: PlacedRow, *, first_key: int, window: int | None, dtype: torch.dtype) -> Tensor:
        """Return what is added to the scores of keys from `first_key` on for each query of `row`: [queries, keys].

        Nothing where the query sees the key, else minus infinity.
        """
        key = (row.start, row.stop, first_key, window)
        if key not in self._masks:
            self._masks[key] = self._new_mask(*key, dtype=dtype)
        return self._masks[key]

    def _new_mask(self, start: int, stop: int, first_key: int, window: int | None, *, dtype: torch.dtype) -> Tensor:
        queries = torch.arange(start, stop, device=self.device).unsqueeze(1)
        keys = torch.arange(first_key, stop, device=self.device).unsqueeze(0)
        hidden = keys > queries if window is None else (keys > queries) | (keys <= queries - window)
        return torch.zeros(hidden.shape, device=self.device, dtype=dtype).masked_fill_(hidden, float("-inf"))


def positions_of(rows: Sequence[Row], *, device: torch.device) -> Tensor:
    """Return the position of each token of `rows` in its sequence: [1, tokens] int64."""
    return _ranges([(row.start, row.stop) for row in rows]).to(device).unsqueeze(0)


def _ranges(ranges: Sequence[tuple[int, int]]) -> Tensor:
    """Return the numbers of all half-open `ranges`, one behind the other: [numbers] int64."""
    if all(stop - start == 1 for start, stop in ranges):
        return torch.tensor([start for start, _ in ranges], dtype=torch.int64)
    return torch.cat([torch.arange(start, stop) for start, stop in ranges])
