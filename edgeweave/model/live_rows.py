"""Rows of a unit that are live, and those that are skipped: zeros stand for what is not computed.

Knows how tensor rows follow token rows. Does not know why a row is skipped.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from edgeweave.interleave.nouns import Row


def live_rows(rows: Sequence[Row], live: Sequence[bool]) -> list[Row]:
    """Return the rows that are live, in order."""
    return [row for row, is_live in zip(rows, live, strict=True) if is_live]


def live_mask(rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
    """Return which tensor rows are live: [tokens] bool."""
    counts = torch.tensor([row.num_tokens for row in rows])
    return torch.tensor(live, dtype=torch.bool).repeat_interleave(counts)


def run_live(hidden: Tensor, rows: Sequence[Row], live: Sequence[bool], run: Callable[[Tensor], Tensor]) -> Tensor:
    """Run `run` over the live tensor rows of `hidden` [tokens, hidden]; others stay as they are."""
    if all(live):
        return run(hidden)
    if not any(live):
        return hidden
    mask = live_mask(rows, live).to(hidden.device)
    result = hidden.clone()
    result[mask] = run(hidden[mask])
    return result


def zero_skipped(hidden: Tensor, rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
    """Return `hidden` [tokens, hidden] with zeros in tensor rows that are not live."""
    if all(live):
        return hidden
    mask = live_mask(rows, live).to(hidden.device)
    return hidden * mask.unsqueeze(1)


def spread_live(computed: Tensor, rows: Sequence[Row], live: Sequence[bool]) -> Tensor:
    """Return [tokens, hidden] of all rows from `computed` [live tokens, hidden]; zeros for the others."""
    if all(live):
        return computed
    mask = live_mask(rows, live).to(computed.device)
    result = computed.new_zeros(len(mask), computed.shape[1])
    result[mask] = computed
    return result
