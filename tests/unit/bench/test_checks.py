"""Tokens of a run against their references."""

from dataclasses import replace

from fakes.bench_runs import answer
from weaving.checks import Reference, check

OURS = answer(0, 1, 2, 3)


def test_equal_tokens_are_good() -> None:
    verdict = check([OURS, OURS], [Reference((0, 1, 2))] * 2)
    assert verdict.is_good
    assert (verdict.num_tokens, verdict.num_ties) == (6, 0)


def test_the_first_token_that_differs_is_named() -> None:
    verdict = check([OURS, OURS], [Reference((0, 1, 2)), Reference((0, 5, 6))])
    assert not verdict.is_good
    assert verdict.differences == ("request 1: output 1 differs from the reference",)


def test_a_token_that_is_missing_or_too_many_differs() -> None:
    assert check([OURS], [Reference((0, 1, 2, 3))]).differences == ("request 0: output 3 differs from the reference",)
    assert check([OURS], [Reference((0, 1))]).differences == ("request 0: output 2 differs from the reference",)


def test_a_tie_is_no_difference_and_the_rest_of_its_output_is_not_compared() -> None:
    """Where two logits were as good as equal, another order of additions may choose the other; it is counted."""
    verdict = check([OURS], [Reference((0, 7, 8), margins=(1.0, 0.9e-5, 1.0))])
    assert verdict.is_good
    assert (verdict.num_tokens, verdict.num_ties) == (1, 1)


def test_more_than_one_tie_in_ten_thousand_tokens_is_not_good() -> None:
    tie = Reference((0, 7, 8), margins=(1.0, 0.0, 1.0))
    assert not check([OURS, OURS], [tie, tie]).is_good
    many = replace(OURS, token_ids=tuple(range(10_000)))
    assert check([OURS, OURS, many], [tie, tie, Reference(many.token_ids)]).is_good
