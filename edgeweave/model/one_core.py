"""How rows get to the compiled attention of `single_rows` and `prompt_rows`, and where it is right for them.

It is for float32 on the CPU, and for a process that computes with one thread: several share a step by torch's kernel,
and other devices have their own. Its rule is the plain one, with or without a window.

Knows tensors and units. Does not know the arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from edgeweave.model.attention import AttentionRule
from edgeweave.model.placed_row import PlacedRow
from edgeweave.model.registers import WIDTH
from edgeweave.model.unit_rows import SingleRows

FEWEST_TOKENS: Final = 16
"""Tokens of a row from which laying out its keys and values for many pays."""


@dataclass(frozen=True, slots=True)
class OneCore:
    """Attends to the keys and values of one layer, arrays [kv heads, tokens, dim] over the memory of the tensors."""

    keys: Any
    values: Any
    of_singles: Callable[..., None]
    of_row: Callable[..., None] | None

    def attend(self, attended: Tensor, query: Tensor, rows: SingleRows, rule: AttentionRule) -> None:
        """Write to `attended` [tokens, heads, value dim] what `query` [tokens, heads, key dim] of `rows` attends to."""
        self.of_singles(
            attended.numpy(),
            query.contiguous().numpy(),
            self.keys,
            self.values,
            rows.tokens,
            rows.first_keys(rule["sliding_window"]),
            rows.stops,
            np.float32(rule["scaling"]),
        )

    def takes(self, row: PlacedRow) -> bool:
        """Return whether a row of several tokens has enough of them, and the processor what they take."""
        return self.of_row is not None and row.num_tokens >= FEWEST_TOKENS

    def attend_row(self, attended: Tensor, query: Tensor, row: PlacedRow, rule: AttentionRule) -> None:
        """Do the same as `attend` for one row of many tokens."""
        if self.of_row is None:
            raise RuntimeError("this processor has no attention of rows of many tokens")
        window = rule["sliding_window"]
        self.of_row(
            attended.numpy(),
            query.contiguous().numpy(),
            self.keys,
            self.values,
            (row.packed_start, row.base, row.start, row.stop),
            row.stop if window is None else window,
            np.float32(rule["scaling"]),
        )


def one_core(keys: Tensor, values: Tensor) -> OneCore | None:
    """Return what attends to `keys` and `values` [kv heads, tokens, dim] on one core, `None` where only torch can."""
    if keys.device.type != "cpu" or keys.dtype is not torch.float32:
        return None
    from edgeweave.model import single_rows  # noqa: PLC0415  importing it compiles it

    of_row = None
    if WIDTH:
        from edgeweave.model import prompt_rows  # noqa: PLC0415  the same

        of_row = prompt_rows.attend_row
    return OneCore(keys.numpy(), values.numpy(), single_rows.attend_singles, of_row)
