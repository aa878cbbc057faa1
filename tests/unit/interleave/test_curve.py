"""What is learnt of times: a line that forgets, and a curve that keeps each size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.curve import Curve, Line

OBSERVATIONS = st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1e6)), min_size=1, max_size=50)


def test_a_line_finds_its_parts() -> None:
    """Fixed part and slope come out of noiseless observations."""
    line = Line()
    for x in (1, 5, 9, 3, 7):
        line.observe(x, 40 + 3 * x)
    assert line.at(0) == pytest.approx(40, rel=0.01)
    assert line.at(11) == pytest.approx(73, rel=0.01)


def test_a_light_observation_counts_little() -> None:
    """A hundred that weigh a hundredth move the line as much as one, and make it forget as much."""
    light, heavy = Line(), Line()
    for line in (light, heavy):
        for _ in range(20):
            line.observe(8, 100)
    for _ in range(100):
        light.observe(8, 300, weight=0.01)
    heavy.observe(8, 300)
    assert heavy.at(8) > 105
    assert light.at(8) == pytest.approx(heavy.at(8), rel=0.001)


def test_a_line_ignores_outliers_and_follows_changes() -> None:
    """One stalled unit changes nothing; a machine that became slower is followed."""
    line = Line()
    for _ in range(20):
        line.observe(8, 100)
    line.observe(8, 5000)
    assert line.at(8) == pytest.approx(100)
    for _ in range(300):
        line.observe(8, 200)
    assert line.at(8) == pytest.approx(200, rel=0.02)


@given(OBSERVATIONS)
def test_a_line_never_predicts_below_zero(observations: list[tuple[int, float]]) -> None:
    """Neither part of a line is negative, so no time is."""
    line = Line()
    for x, y in observations:
        line.observe(x, y)
    assert line.at(0) >= 0
    assert line.at(1e5) >= line.at(1.0) - 1e-6


def test_a_curve_keeps_what_a_size_took_however_long_another_one_runs() -> None:
    """A thousand full steps do not make it forget what a thin one took."""
    curve = Curve()
    for _ in range(4):
        curve.observe(2, 60)
    for _ in range(1000):
        curve.observe(8, 120)
    assert (curve.at(2), curve.at(8)) == (60, 120)
    assert curve.at(5) == pytest.approx(90)
    assert curve.fixed == pytest.approx(40)


def test_a_curve_promises_nothing_of_sizes_while_it_saw_one() -> None:
    """With one size the whole time is taken to be fixed: half of the rows would take as long."""
    curve = Curve()
    for _ in range(10):
        curve.observe(8, 100)
    assert (curve.at(4), curve.at(16), curve.fixed) == (100, 100, 100)


def test_a_curve_follows_a_size_and_leaves_outliers_out() -> None:
    """The mean of a size is that of its last observations."""
    curve = Curve()
    for _ in range(20):
        curve.observe(8, 100)
    curve.observe(8, 5000)
    assert curve.at(8) == pytest.approx(100)
    for _ in range(100):
        curve.observe(8, 200)
    assert curve.at(8) == pytest.approx(200, rel=0.02)


@given(OBSERVATIONS)
def test_a_curve_never_predicts_below_zero(observations: list[tuple[int, float]]) -> None:
    """Whatever was seen, no part is negative."""
    curve = Curve()
    for x, y in observations:
        curve.observe(x, y)
    assert curve.fixed >= 0
    assert min(curve.at(x) for x in (1, 7, 1000)) >= 0
