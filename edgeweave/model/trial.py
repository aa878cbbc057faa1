"""A few tokens to try a part with, before it serves.

Knows parts. Does not know what is tried, nor what with.
"""

from typing import Final

import torch
from torch import Tensor

from edgeweave.interleave.nouns import Row
from edgeweave.model.part import Part

_MOST_TOKENS: Final = 5


def trial_unit(part: Part, *, seed: int) -> tuple[list[Row], Tensor]:
    """Return rows that fit into one block of `part`, and hidden states [tokens, hidden] for them."""
    num_tokens = min(_MOST_TOKENS, part.cache.capacity.block_tokens)
    hidden = torch.randn(num_tokens, part.hidden_size, generator=torch.Generator().manual_seed(seed))
    return [Row(0, 0, num_tokens)], hidden.to(part.cache.device, part.cache.dtype)
