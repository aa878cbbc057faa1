"""Tensor rows of a unit that are live, and those that are skipped: zeros stand for what is not computed.

Knows how tensor rows follow token rows. Does not know why a row is skipped.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from edgeweave.interleave.nouns import Row


def keep_live(hidden: Tensor, rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
    """Return the tensor rows of `hidden` [tokens, hidden] that are live: [live tokens, hidden]."""
    return hidden if all(live) else hidden[_live_mask(rows, live).to(hidden.device)]


def spread_live(computed: Tensor, rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
    """Return [tokens, hidden] of all rows from `computed` [live tokens, hidden]; zeros for the others."""
    if all(live):
        return computed
    mask = _live_mask(rows, live).to(computed.device)
    result = computed.new_zeros(len(mask), computed.shape[1])
    result[mask] = computed
    return result


def _live_mask(rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
    """Return which tensor rows are live: [tokens] bool."""
    counts = torch.tensor([row.num_tokens for row in rows])
    return torch.tensor(live, dtype=torch.bool).repeat_interleave(counts)
