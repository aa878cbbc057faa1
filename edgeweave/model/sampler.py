"""From logits to tokens.

The noise of a draw is a pure function of the request's seed and the index of the token in the output, so a token does
not depend on what else was in the batch, nor on how often it was computed. Greedy takes the largest logit, of equal
ones the first.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from edgeweave.errors import UnitFailedError
from edgeweave.interleave.nouns import ErrorCode, Sampling


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
    scores = logits.to("cpu", torch.float64) / sampling.temperature
    scores = _keep_top_p(_keep_top_k(scores, sampling.top_k), sampling.top_p)
    return int((scores + _gumbel(sampling.seed, index, len(scores))).argmax())


def _keep_top_k(scores: Tensor, top_k: int) -> Tensor:
    if not 0 < top_k < len(scores):
        return scores
    return scores.masked_fill(scores < scores.topk(top_k).values[-1], float("-inf"))


def _keep_top_p(scores: Tensor, top_p: float) -> Tensor:
    """Keep the fewest most likely tokens whose probability reaches `top_p`; 0 and 1 keep all."""
    if not 0 < top_p < 1:
        return scores
    likely = scores.softmax(-1).sort(descending=True, stable=True)
    before = likely.values.cumsum(-1) - likely.values  # the probability of all more likely tokens
    beyond = torch.zeros_like(scores, dtype=torch.bool).scatter(0, likely.indices, before >= top_p)
    return scores.masked_fill(beyond, float("-inf"))


def _gumbel(seed: int, index: int, num_tokens: int) -> Tensor:
    """Return the noise of output token `index` under `seed`: [num_tokens] float64.

    Philox is a counter: the seed is its key, the index the highest word of its count, so draws never overlap.
    """
    uniform = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, index])).random(num_tokens)
    return -torch.from_numpy(uniform).clamp_min_(np.finfo(np.float64).tiny).log_().neg_().log_()
