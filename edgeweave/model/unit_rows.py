"""The rows of the unit that runs now, as attention needs them.

Knows where each row's tokens lie in the packed tensors and where its sequence's keys and values lie in the cache.
Built once a unit, used by each of its layers. Does not know layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from edgeweave.interleave.nouns import Row


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """Token positions `[start, stop)` of one sequence.

    They are the tokens `[packed_start, packed_stop)` of the unit; position 0 of the sequence lies at token `base` of
    the cache.
    """

    start: int
    stop: int
    packed_start: int
    packed_stop: int
    base: int


@dataclass(slots=True)
class UnitRows:
    """All rows of a unit in packed order, and the masks that its layers share."""

    rows: tuple[PlacedRow, ...]
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
        return cls(tuple(placed), device, slots.to(device))

    def mask(self, row: PlacedRow, *, first_key: int, window: int | None) -> Tensor:
        """Return which keys from `first_key` on each query of `row` sees: [queries, keys] bool."""
        key = (row.start, row.stop, first_key, window)
        if key not in self._masks:
            self._masks[key] = self._new_mask(*key)
        return self._masks[key]

    def _new_mask(self, start: int, stop: int, first_key: int, window: int | None) -> Tensor:
        queries = torch.arange(start, stop, device=self.device).unsqueeze(1)
        keys = torch.arange(first_key, stop, device=self.device).unsqueeze(0)
        seen = keys <= queries
        return seen if window is None else seen & (keys > queries - window)


def positions_of(rows: Sequence[Row], *, device: torch.device) -> Tensor:
    """Return the position of each token of `rows` in its sequence: [1, tokens] int64."""
    return _ranges([(row.start, row.stop) for row in rows]).to(device).unsqueeze(0)


def _ranges(ranges: Sequence[tuple[int, int]]) -> Tensor:
    """Return the numbers of all half-open `ranges`, one behind the other: [numbers] int64."""
    if all(stop - start == 1 for start, stop in ranges):
        return torch.tensor([start for start, _ in ranges], dtype=torch.int64)
    return torch.cat([torch.arange(start, stop) for start, stop in ranges])
