"""How rows of one token get to the compiled attention of `single_rows`, and where it is right for them.

It is for float32 on the CPU, and for a process that computes with one thread: several share a step by torch's kernel,
and other devices have their own. Its rule is the plain one, with or without a window.

Knows tensors and units. Does not know the arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgeweave.model.attention import AttentionRule
from edgeweave.model.unit_rows import SingleRows


@dataclass(frozen=True, slots=True)
class OneCore:
    """Attends to the keys and values of one layer, arrays [kv heads, tokens, dim] over the memory of the tensors."""

    keys: Any
    values: Any
    kernel: Callable[..., None]

    def attend(self, attended: Tensor, query: Tensor, rows: SingleRows, rule: AttentionRule) -> None:
        """Write to `attended` [tokens, heads, value dim] what `query` [tokens, heads, key dim] of `rows` attends to."""
        self.kernel(
            attended.numpy(),
            query.contiguous().numpy(),
            self.keys,
            self.values,
            rows.tokens,
            rows.first_keys(rule["sliding_window"]),
            rows.stops,
            np.float32(rule["scaling"]),
        )


def one_core(keys: Tensor, values: Tensor) -> OneCore | None:
    """Return what attends to `keys` and `values` [kv heads, tokens, dim] on one core, `None` where only torch can."""
    if keys.device.type != "cpu" or keys.dtype is not torch.float32:
        return None
    from edgeweave.model.single_rows import attend_singles  # noqa: PLC0415  importing it compiles it

    return OneCore(keys.numpy(), values.numpy(), attend_singles)
