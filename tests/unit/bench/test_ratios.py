"""Paired ratios."""

from weaving.ratios import paired


def test_runs_of_the_same_round_are_compared() -> None:
    """The machine was twice as slow in round 1: both were, and no ratio shows it."""
    ratio = paired({0: 90.0, 1: 46.0, 2: 88.0}, {0: 100.0, 1: 50.0, 2: 100.0})
    assert ratio is not None
    assert (ratio.least, ratio.median, ratio.most, ratio.num_pairs) == (0.88, 0.9, 0.92, 3)
    assert str(ratio) == "0.90 (0.88-0.92)"


def test_a_round_without_its_counterpart_is_left_out() -> None:
    ratio = paired({0: 1.0, 1: 2.0}, {1: 4.0, 2: 1.0})
    assert ratio is not None
    assert (ratio.median, ratio.num_pairs) == (0.5, 1)
    assert str(ratio) == "0.50"


def test_without_a_pair_there_is_no_ratio() -> None:
    assert paired({0: 1.0}, {1: 1.0}) is None
    assert paired({0: 1.0}, {0: 0.0}) is None
