"""Outputs of a turn against the reference."""

from contest.verdicts import verdict_of
from weaving.checks import Reference

REFERENCES = [Reference((1, 2, 3), (1.0, 1.0, 1.0)), Reference((4, 5, 6), (1.0, 0.0, 1.0))]


def test_equal_outputs_are_good() -> None:
    verdict = verdict_of([[1, 2, 3], [4, 5, 6]], REFERENCES, num_tokens=3)
    assert verdict.is_good
    assert str(verdict) == "2 of 2"


def test_a_short_turn_is_compared_with_the_beginning() -> None:
    assert verdict_of([[1], [4]], REFERENCES, num_tokens=1).is_good
    assert not verdict_of([[1], [5]], REFERENCES, num_tokens=1).is_good


def test_an_output_that_differs_is_named() -> None:
    verdict = verdict_of([[1, 9, 3], [4, 5, 6]], REFERENCES, num_tokens=3)
    assert str(verdict) == "1 of 2"
    assert verdict.reason == "request 0: output 1 differs from the reference"


def test_a_tie_is_good_and_yet_not_equal() -> None:
    verdict = verdict_of([[1, 2, 3], [4, 7, 8]], REFERENCES, num_tokens=3)
    assert verdict.is_good
    assert str(verdict) == "1 of 2"


def test_an_output_that_ends_early_differs() -> None:
    assert not verdict_of([[1, 2], [4, 5, 6]], REFERENCES, num_tokens=3).is_good
