"""Draws: greedy, filtered, repeatable, and never from numbers that are none."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from edgeweave.interleave.nouns import GREEDY, ErrorCode, Sampling
from edgeweave.model import NotFiniteError, Sampler

LOGITS = torch.tensor([0.0, 3.0, 2.0, 3.0, 1.0])


def _draws(sampling: Sampling, num_draws: int = 400) -> Counter[int]:
    rows = LOGITS.expand(num_draws, -1)
    return Counter(Sampler().sample(rows, [sampling] * num_draws, range(num_draws)))


def test_greedy_takes_the_first_of_equal_logits() -> None:
    """Ties break as argmax breaks them."""
    assert Sampler().sample(LOGITS.unsqueeze(0), [GREEDY], [0]) == [1]


def test_a_draw_depends_on_seed_and_index_alone() -> None:
    """The same row draws the same token alone, in company, and in another order."""
    samplings = [Sampling(temperature=1.0, seed=seed) for seed in range(8)]
    indices = [3 * seed for seed in range(8)]
    rows = torch.randn(8, 50, generator=torch.Generator().manual_seed(1))
    together = Sampler().sample(rows, samplings, indices)
    alone = [Sampler().sample(rows[i : i + 1], samplings[i : i + 1], indices[i : i + 1])[0] for i in range(8)]
    backwards = Sampler().sample(rows.flip(0), samplings[::-1], indices[::-1])[::-1]
    assert together == alone == backwards


def test_draws_follow_the_softmax() -> None:
    """Over many indices the shares are those of the softmax, within four standard deviations."""
    shares = LOGITS.softmax(-1)
    counts = _draws(Sampling(temperature=1.0, seed=5), 2_000)
    for token_id, share in enumerate(shares.tolist()):
        assert abs(counts[token_id] - 2_000 * share) < 4 * (2_000 * share * (1 - share)) ** 0.5


def test_a_low_temperature_draws_the_best_only() -> None:
    """Temperature divides the logits."""
    assert set(_draws(Sampling(temperature=0.01, seed=1))) == {1, 3}


def test_top_k_keeps_the_best_and_what_equals_them() -> None:
    """The k-th logit is the border; all that reach it stay."""
    assert set(_draws(Sampling(temperature=5.0, top_k=1))) == {1, 3}
    assert set(_draws(Sampling(temperature=5.0, top_k=3))) == {1, 2, 3}
    assert set(_draws(Sampling(temperature=5.0, top_k=99))) == {0, 1, 2, 3, 4}


def test_top_p_keeps_the_fewest_that_reach_it() -> None:
    """Probabilities are about .39 .39 .14 .05 .02; the token that crosses the border stays."""
    assert set(_draws(Sampling(temperature=1.0, top_p=0.3))) == {1}
    assert set(_draws(Sampling(temperature=1.0, top_p=0.5))) == {1, 3}
    assert set(_draws(Sampling(temperature=1.0, top_p=0.8))) == {1, 2, 3}


def test_mixed_rows_keep_their_own_rule() -> None:
    """Greedy and drawn rows lie in one batch."""
    drawn = Sampler().sample(LOGITS.expand(2, -1), [GREEDY, Sampling(temperature=0.5, seed=3)], [0, 7])
    assert drawn == [1, Sampler().sample(LOGITS.expand(1, -1), [Sampling(temperature=0.5, seed=3)], [7])[0]]


def test_no_rows_draw_nothing() -> None:
    """A unit without a final row has no logits."""
    assert Sampler().sample(torch.empty(0, 5), [], []) == []


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_an_error(bad: float) -> None:
    """The error names the rows and carries its code; a masked token (-inf) is no fault."""
    rows = LOGITS.repeat(3, 1)
    rows[0, 0] = float("-inf")
    rows[1, 2] = bad
    with pytest.raises(NotFiniteError, match=r"rows \[1\]") as caught:
        Sampler().sample(rows, [GREEDY] * 3, [0] * 3)
    assert caught.value.code is ErrorCode.NOT_FINITE


@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0], ids=["flat", "usual", "peaked"])
@pytest.mark.parametrize("filters", [{"top_k": 40}, {"top_p": 0.9}, {"top_k": 500, "top_p": 0.7}, {"top_p": 0.9999}])
def test_filters_of_a_large_vocabulary_are_those_of_the_formula(spread: float, filters: dict[str, Any]) -> None:
    """Looking at the likely tokens first changes no draw: each is the one of masked scores over all tokens."""
    logits = torch.randn(5_000, generator=torch.Generator().manual_seed(2)) * spread
    samplings = [Sampling(temperature=0.8, seed=seed, **filters) for seed in range(40)]
    drawn = Sampler().sample(logits.expand(40, -1), samplings, range(40))
    assert drawn == [_by_the_book(logits, sampling, index) for index, sampling in enumerate(samplings)]


def _by_the_book(logits: torch.Tensor, sampling: Sampling, index: int) -> int:
    """Draw with every token sorted and masked."""
    scores = logits.double() / sampling.temperature
    if sampling.top_k:
        scores = scores.masked_fill(scores < scores.sort().values[-sampling.top_k], float("-inf"))
    if sampling.top_p:
        likely = scores.softmax(-1).sort(descending=True, stable=True)
        beyond = likely.values.cumsum(-1) - likely.values >= sampling.top_p
        scores = scores.masked_fill(torch.zeros_like(beyond).scatter(0, likely.indices, beyond), float("-inf"))
    uniform = np.random.Generator(np.random.Philox(key=sampling.seed, counter=[0, 0, 0, index])).random(len(logits))
    return int((scores - torch.from_numpy(uniform).log().neg().log()).argmax())
