"""When two ways to compute are taken to be the same: what either uses, and how near their results are.

Equal numbers at one place mean equal functions where neither has a threshold, or does one thing or another. So what is
compared is also watched. Knows torch's operations. Does not know models.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_TOLERANCES: Final = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""How far the two may be apart, as a share of the largest number: the order of sums, and nothing else."""
SMOOTH: Final = frozenset(
    {
        *("linear", "t", "mm", "addmm", "add", "mul", "neg", "pow", "mean", "rsqrt", "silu", "gelu"),
        *("view", "_unsafe_view", "reshape", "transpose", "unsqueeze", "slice", "cat"),
        *("clone", "to", "_to_copy", "alias"),
    }
)
"""Operations of a layer of the common shape beside attention: none has a threshold, or does one thing or another."""


def is_near(output: Tensor, expected: Tensor) -> bool:
    """Return whether two results are the same up to the order of sums."""
    return bool((output - expected).abs().max() <= _TOLERANCES[expected.dtype] * expected.abs().max())


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped there
    """Notes the names of torch's operations that run inside, unless it is off."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self.is_off = False
        self.seen: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if not self.is_off:
            self.seen.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))
