"""The mix of a load: known of prompts at once, of answers by what earlier ones used."""

import pytest

from edgeweave.interleave.mix import Mix
from edgeweave.interleave.requests import Request


def request(num_prompt: int, max_tokens: int, num_output: int = 0) -> Request:
    """A request, with an answer of so many tokens."""
    return Request("any", (1,) * num_prompt, max_tokens, output=[1] * num_output)


def test_before_the_first_request_there_is_no_mix() -> None:
    """Nothing was asked."""
    assert (Mix().mean_prompt, Mix().mean_output) == (0.0, 0.0)


def test_before_an_answer_is_whole_it_may_be_as_long_as_was_asked_for() -> None:
    """Two requests were admitted, none has ended."""
    mix = Mix()
    for num_prompt, max_tokens in ((100, 10), (300, 30)):
        mix.take_admitted(request(num_prompt, max_tokens))
    assert mix.mean_prompt == pytest.approx(200, rel=0.02)
    assert mix.mean_output == pytest.approx(20, rel=0.02)


def test_answers_are_as_long_as_earlier_ones_by_what_they_may_be() -> None:
    """Clients who ask for 1,000 tokens and take 100 will take 20 of 200."""
    mix = Mix()
    mix.take_admitted(request(10, 1000))
    mix.take_ended(request(10, 1000, num_output=100))
    for _ in range(1000):
        mix.take_admitted(request(10, 200))
    assert mix.mean_output == pytest.approx(20, rel=0.01)


def test_that_the_short_answers_end_first_fools_nobody() -> None:
    """Half of the answers have 10 tokens, half 100, as was asked for; only the short ones have ended."""
    mix = Mix()
    for max_tokens in (10, 100) * 50:
        mix.take_admitted(request(400, max_tokens))
    for _ in range(50):
        mix.take_ended(request(400, 10, num_output=10))
    assert mix.mean_output == pytest.approx(55, rel=0.05)


def test_a_load_that_changes_is_followed_as_soon_as_it_is_admitted() -> None:
    """After 64 requests of another kind little is left of the first one."""
    mix = Mix()
    for _ in range(1000):
        mix.take_admitted(request(4000, 10))
        mix.take_ended(request(4000, 10, num_output=10))
    for _ in range(64):
        mix.take_admitted(request(100, 200))
    assert mix.mean_prompt < 100 + 0.15 * 3900
    assert mix.mean_output > 200 - 0.15 * 190
