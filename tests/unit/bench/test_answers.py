"""What users see: throughput, times to tokens, and the share of requests that were served well."""

import pytest

from fakes.bench_runs import answer
from weaving.answers import Latency, good_share, quantile, tokens_per_s, wall_us


def test_throughput_counts_all_tokens_from_the_first_submission_to_the_last_token() -> None:
    answers = [answer(1_000_000, 2_000_000), answer(1_500_000, 2_500_000, 3_000_000, num_prompt_tokens=27)]
    assert wall_us(answers) == 2_000_000
    assert tokens_per_s(answers) == (10 + 1 + 27 + 2) / 2


def test_times_of_one_request() -> None:
    """Time per token is of those after the first; a single token has none."""
    assert answer(100, 1_100, 2_100, 5_100).first_token_us == 1_000
    assert answer(100, 1_100, 2_100, 5_100).per_token_us == 2_000
    assert answer(100, 1_100).per_token_us is None


def test_latency_without_any_second_token() -> None:
    latency = Latency.of([answer(0, 1_000), answer(0, 3_000)])
    assert (latency.ttft_p50_ms, latency.tpot_p50_ms, latency.tpot_p90_ms) == (2.0, None, None)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 3.0), (0.9, 4.6), (1.0, 5.0)])
def test_a_quantile_lies_between_two_values(share: float, expected: float) -> None:
    assert quantile([5.0, 1.0, 2.0, 4.0, 3.0], share) == pytest.approx(expected)


def test_a_request_is_good_within_the_slack_of_both_limits() -> None:
    """Late first tokens and slow later ones both count against it; 1.5 times the limit is still good."""
    limits = Latency(0.0, 10.0, 0.0, 2.0)
    good = answer(0, 15_000, 18_000)
    late = answer(0, 15_001, 16_000)
    slow = answer(0, 10_000, 13_001)
    single = answer(0, 15_000)
    assert good_share([good, late, slow, single], limits) == 0.5
