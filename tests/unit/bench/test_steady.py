"""The steady state of a run: where it begins and ends, and what its throughput is."""

import pytest

from fakes.bench_runs import answer
from weaving.answers import Answer
from weaving.loads import Steady
from weaving.steady import Costs, Window, steady_tokens_per_s, steady_window

RUN = [answer(0, 10, 40), answer(0, 20, 60), answer(40, 70, 90), answer(60, 80, 100)]


@pytest.mark.parametrize(
    ("rule", "window"),
    [
        (Steady.REPLENISHED, Window(40, 60)),
        (Steady.PREFILL, Window(10, 80)),
        (Steady.DECODE, None),
    ],
)
def test_each_rule_cuts_its_own_ramp_and_drain(rule: Steady, window: Window | None) -> None:
    """Decode alone is steady from the last first token to the first end, which here comes before."""
    assert steady_window(RUN, rule) == window


def test_decode_is_steady_while_all_sequences_decode() -> None:
    assert steady_window([answer(0, 10, 50), answer(0, 20, 40)], Steady.DECODE) == Window(20, 40)


def _evenly(num_requests: int) -> list[Answer]:
    """Return requests one after the other: a prompt every 100 us, then five tokens, one each 10 us."""
    return [
        answer(100 * number, *(100 * number + 50 + 10 * index for index in range(6)), num_prompt_tokens=50)
        for number in range(num_requests)
    ]


@pytest.mark.parametrize("shift", [0, 17, 50, 83])
def test_the_place_of_the_window_makes_no_difference_to_an_even_load(shift: int) -> None:
    """A window of whole periods says the same wherever it begins: prompts are spread, not counted at their ends."""
    window = Window(200 + shift, 600 + shift)
    throughput = steady_tokens_per_s(_evenly(10), window, Costs(1.0, 2.0))
    assert throughput == pytest.approx(56 / 100e-6)


def test_tokens_count_by_their_cost() -> None:
    """A window with the prompts alone is not faster than one with the outputs alone, where both took equal work."""
    prompts = [answer(0, 100, 300, 300, num_prompt_tokens=100)]
    costs = Costs(1.0, 50.0)
    first, second = (steady_tokens_per_s(prompts, window, costs) for window in (Window(0, 100), Window(299, 399)))
    assert first == pytest.approx(second)


def test_steady_decode_of_a_load_without_cost_of_prompts() -> None:
    answers = [answer(0, 10, 20, 30, 40, num_prompt_tokens=0)]
    assert steady_tokens_per_s(answers, Window(10, 40), Costs(0.0, 1.0)) == pytest.approx(4 / 30e-6)
