"""From times to tokens a second."""

import pytest

from contest.cases import Case
from contest.engines import Engine
from contest.speeds import Speeds, Spread, Turn, core_share, decode_tokens_per_s, prefill_tokens_per_s

DECODE = Case(batch=4, prompt_tokens=128, decoded_tokens=50)
PREFILL = Case(batch=1, prompt_tokens=1000, decoded_tokens=0)


def test_an_engine_that_tells_its_first_tokens_needs_one_turn() -> None:
    assert decode_tokens_per_s(DECODE, Turn(total_s=2.5, first_s=0.5), None) == 100.0


def test_else_the_time_of_a_turn_that_ends_there_is_taken_off() -> None:
    """What an engine spends on every turn, whatever its length, is in both and cancels."""
    assert decode_tokens_per_s(DECODE, Turn(total_s=4.5), Turn(total_s=0.5)) == 50.0


def test_a_turn_that_noise_made_shorter_than_its_prefill_gives_no_figure() -> None:
    assert decode_tokens_per_s(DECODE, Turn(total_s=0.4), Turn(total_s=0.5)) is None


def test_an_engine_that_tells_nothing_has_to_be_asked_twice() -> None:
    with pytest.raises(ValueError, match="asked for it alone"):
        decode_tokens_per_s(DECODE, Turn(total_s=0.4), None)


def test_a_prefill_ends_with_the_first_token() -> None:
    assert prefill_tokens_per_s(PREFILL, Turn(total_s=2.0)) == 500.0
    assert prefill_tokens_per_s(PREFILL, Turn(total_s=2.0, first_s=1.0)) == 1000.0


def test_medians_are_over_rounds_and_ratios_within_them() -> None:
    """In round 1 the machine was half as fast: the spread shows it, the ratio does not."""
    speeds = Speeds(DECODE)
    for number, (ours, theirs) in enumerate([(200.0, 100.0), (102.0, 50.0), (210.0, 100.0)]):
        speeds.add(Engine.OURS, ours, number=number)
        speeds.add(Engine.GENERATE, theirs, number=number)
    assert speeds.spread(Engine.OURS) == Spread(200.0, 102.0, 210.0)
    ratio = speeds.ratio(Engine.OURS, Engine.GENERATE)
    assert ratio is not None
    assert (ratio.median, ratio.least, ratio.most) == (2.04, 2.0, 2.1)
    assert speeds.step_s(Engine.OURS) == 4 / 200.0


def test_a_round_without_a_figure_is_in_no_median_and_no_ratio() -> None:
    speeds = Speeds(DECODE)
    speeds.add(Engine.OURS, 100.0, number=0)
    speeds.add(Engine.OURS, None, number=1)
    speeds.add(Engine.GENERATE, 50.0, number=1)
    assert speeds.spread(Engine.OURS) == Spread(100.0, 100.0, 100.0)
    assert speeds.ratio(Engine.OURS, Engine.GENERATE) is None


def test_an_engine_that_was_not_there_has_no_figure() -> None:
    speeds = Speeds(PREFILL)
    assert speeds.spread(Engine.VLLM) is None
    assert speeds.step_s(Engine.VLLM) is None


def test_the_share_of_the_core_is_told_where_it_was_counted() -> None:
    assert core_share(Turn(total_s=2.0, cpu_s=1.5)) == 0.75
    assert core_share(Turn(total_s=2.0)) is None
