"""Rows of one token that one call of torch's attention can take.

Knows where the rows lie. Does not know keys or values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from edgeweave.model.placed_row import PlacedRow


@dataclass(frozen=True, slots=True)
class Band:
    """Rows of one token, all at position `start`, of `num_rows` sequences that lie `step` tokens apart in the cache.

    The first one's sequence begins at token `base`. So their keys are one strided view, and one call attends for all.
    """

    start: int
    base: int
    step: int = 0
    num_rows: int = 1


@dataclass(frozen=True, slots=True)
class Bands:
    """All rows of one token of a unit. `tokens` [rows] int64 says which tokens of the unit they are, band by band."""

    bands: tuple[Band, ...]
    tokens: Tensor

    @classmethod
    def of(cls, rows: Sequence[PlacedRow], *, device: torch.device) -> "Bands":
        """Return `rows` in as few bands as neighbours in the cache allow."""
        ordered = sorted(rows, key=lambda row: (row.start, row.base))
        found: list[Band] = []
        for row in ordered:
            longer = _longer(found[-1], row) if found else None
            if longer is None:
                found.append(Band(row.start, row.base))
            else:
                found[-1] = longer
        return cls(tuple(found), torch.tensor([row.packed_start for row in ordered], device=device))


def _longer(band: Band, row: PlacedRow) -> Band | None:
    """Return `band` with `row` behind it, `None` where it does not go on like that."""
    step = row.base - (band.base + (band.num_rows - 1) * band.step)
    goes_on = step == band.step or band.num_rows == 1
    if row.start != band.start or not goes_on:
        return None
    return replace(band, step=step, num_rows=band.num_rows + 1)
