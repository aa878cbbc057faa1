"""The rows of the unit that runs now, as attention needs them.

Knows where each row's tokens lie in the packed tensors and where its sequence's keys and values lie in the cache.
Built once a unit, used by each of its layers. Does not know layers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

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

    @property
    def num_tokens(self) -> int:
        """Tokens of this row."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Band:
    """Rows of one token, all at position `start`, of `num_rows` sequences that lie `step` tokens apart in the cache.

    The first one's sequence begins at token `base`. So their keys are one strided view, and one call attends for all.
    """

    start: int
    base: int
    step: int = 0
    num_rows: int = 1


@dataclass(slots=True)
class UnitRows:
    """All rows of a unit in packed order, and the masks that its layers share.

    `rows` are those of several tokens; those of one are in `bands`, in their order. `singles` says where these tokens
    are in the unit, `None` if it has no others and they are in that order.
    """

    rows: tuple[PlacedRow, ...]
    bands: tuple[Band, ...]
    singles: Tensor | None  # [rows of one token] int64
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
        single = sorted((row for row in placed if row.num_tokens == 1), key=lambda row: (row.start, row.base))
        places = [row.packed_start for row in single]
        singles = None if places == list(range(packed)) or not places else torch.tensor(places, device=device)
        return cls(long, bands(single), singles, device, slots.to(device))

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


def bands(rows: Iterable[PlacedRow]) -> tuple[Band, ...]:
    """Return `rows`, of one token each and ordered by position and base, in as few bands as neighbours allow."""
    found: list[Band] = []
    for row in rows:
        longer = _longer(found[-1], row) if found else None
        if longer is None:
            found.append(Band(row.start, row.base))
        else:
            found[-1] = longer
    return tuple(found)


def _longer(band: Band, row: PlacedRow) -> Band | None:
    """Return `band` with `row` behind it, `None` where it does not go on like that."""
    step = row.base - (band.base + (band.num_rows - 1) * band.step)
    goes_on = step == band.step or band.num_rows == 1
    if row.start != band.start or not goes_on:
        return None
    return replace(band, step=step, num_rows=band.num_rows + 1)


def _ranges(ranges: Sequence[tuple[int, int]]) -> Tensor:
    """Return the numbers of all half-open `ranges`, one behind the other: [numbers] int64."""
    if all(stop - start == 1 for start, stop in ranges):
        return torch.tensor([start for start, _ in ranges], dtype=torch.int64)
    return torch.cat([torch.arange(start, stop) for start, stop in ranges])
