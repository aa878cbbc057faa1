"""From logits to tokens.

The noise of a draw is a pure function of the request's seed and the index of the token in the output, so a token does
not depend on what else was in the batch, nor on how often it was computed. Greedy takes the largest logit, of equal
ones the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from edgeweave.errors import UnitFailedError
from edgeweave.interleave.nouns import ErrorCode, Sampling

_LIKELY: Final = 256
"""Tokens that are looked at first for `top_p`; the sum of their probability is nearly always enough."""


class NotFiniteError(UnitFailedError):
    """Logits were not numbers."""

    code = ErrorCode.NOT_FINITE


class Sampler:
    """Draws one token for each row of logits."""

    def sample(self, logits: Tensor, samplings: Sequence[Sampling], indices: Sequence[int]) -> list[int]:
        """Return a token id for each row of `logits` [rows, vocab].

        Row i is drawn as `samplings[i]` says, as token `indices[i]` of its output. Raises `NotFiniteError` where a row
        holds NaN or infinity.
        """
        if not samplings:
            return []
        best, tokens = logits.max(dim=-1)
        _check_finite(best)
        drawn: list[int] = tokens.tolist()
        for row, (sampling, index) in enumerate(zip(samplings, indices, strict=True)):
            if sampling.temperature > 0:
                drawn[row] = _draw(logits[row], sampling, index)
        return drawn


def _check_finite(best: Tensor) -> None:
    finite = best.isfinite()  # the largest of a row that holds NaN is NaN
    if not finite.all():
        rows = (~finite).nonzero().flatten().tolist()
        raise NotFiniteError(
            f"logits of rows {rows} are not finite; load the model in float32 or bfloat16, or check its weights"
        )


def _draw(logits: Tensor, sampling: Sampling, index: int) -> int:
    """Return the token whose logit plus Gumbel noise is the largest: a draw from the softmax of `logits` [vocab]."""
    kept = _top_p(_top_k(_Kept.of(logits), sampling), sampling)
    noise = _gumbel(sampling.seed, index, len(logits), kept.token_ids)
    best = int((kept.logits.to("cpu", torch.float64) / sampling.temperature + noise).argmax())
    return best if kept.token_ids is None else int(kept.token_ids[best])


@dataclass(frozen=True, slots=True)
class _Kept:
    """The tokens that may be drawn: their logits [kept], and in the same order their ids, `None` while all are kept."""

    logits: Tensor
    token_ids: Tensor | None

    @classmethod
    def of(cls, logits: Tensor) -> "_Kept":
        return cls(logits, None)

    def only(self, places: Tensor) -> "_Kept":
        """Keep those at `places` [kept] int64."""
        return _Kept(self.logits[places], places if self.token_ids is None else self.token_ids[places])


def _top_k(kept: _Kept, sampling: Sampling) -> _Kept:
    """Keep the `top_k` largest logits, and all that equal the last of them."""
    if not 0 < sampling.top_k < len(kept.logits):
        return kept
    return kept.only(_at_least(kept.logits, sampling.top_k))


def _top_p(kept: _Kept, sampling: Sampling) -> _Kept:
    """Keep the fewest most likely tokens whose probability reaches `top_p`; 0 and 1 keep all."""
    if not 0 < sampling.top_p < 1:
        return kept
    probabilities = (kept.logits.to(torch.float64) / sampling.temperature).softmax(-1)
    likely = _at_least(probabilities, min(_LIKELY, len(probabilities)))
    if probabilities[likely].sum() < sampling.top_p:  # rare: nearly as many tokens are as likely
        likely = torch.arange(len(probabilities), device=probabilities.device)
    ordered = probabilities[likely].sort(descending=True, stable=True)
    before = ordered.values.cumsum(-1) - ordered.values  # the probability of all more likely tokens
    return kept.only(likely[ordered.indices[before < sampling.top_p]])


def _at_least(values: Tensor, count: int) -> Tensor:
    """Return the places of the `count` largest `values`, and of all that equal the last of them, in rising order."""
    return (values >= values.topk(count).values[-1]).nonzero().flatten()


def _gumbel(seed: int, index: int, num_tokens: int, token_ids: Tensor | None) -> Tensor:
    """Return the noise of output token `index` under `seed` for `token_ids`, or all: float64 on the CPU.

    Philox is a counter: the seed is its key, the index the highest word of its count, so draws never overlap.
    """
    uniform = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, index])).random(num_tokens)
    wanted = torch.from_numpy(uniform) if token_ids is None else torch.from_numpy(uniform)[token_ids.cpu()]
    return -wanted.clamp_min_(np.finfo(np.float64).tiny).log_().neg_().log_()
