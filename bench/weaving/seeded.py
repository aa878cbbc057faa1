"""Random weights of models that are measured and not read.

Knows torch. Does not know which model it is.
"""

import torch
from torch import nn


@torch.no_grad()
def spread_weights(model: nn.Module) -> None:
    """Draw all weights of `model` anew, from the seed that torch has now."""
    for name, tensor in model.named_parameters():
        _spread(name, tensor)


def _spread(name: str, tensor: torch.Tensor) -> None:
    """Give `tensor` values under which each layer counts, so that no answer repeats itself."""
    if "embed" in name:
        tensor.normal_(std=0.2)
    elif tensor.ndim > 1:
        tensor.normal_(std=1.6 * min(tensor.shape[-2:]) ** -0.5)
    else:
        tensor.add_(torch.empty_like(tensor).normal_(std=0.02 if name.endswith("bias") else 0.2))
