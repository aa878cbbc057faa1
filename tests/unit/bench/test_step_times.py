"""Times of decode steps by rows."""

import pytest

from edgeweave.client.mesh_state import UnitSum
from weaving.step_times import MIN_UNITS, StepTimes, merged


def test_a_number_of_rows_that_was_seen_often_is_taken_as_it_was() -> None:
    times = StepTimes({4: UnitSum(MIN_UNITS, MIN_UNITS * 100), 8: UnitSum(MIN_UNITS, MIN_UNITS * 130)})
    assert (times.step_us(4), times.step_us(8)) == (100, 130)


def test_others_are_read_off_a_line() -> None:
    """Also those that were seen too seldom, whose own time may be a chance."""
    times = StepTimes({1: UnitSum(20, 20 * 110), 2: UnitSum(1, 120), 4: UnitSum(20, 20 * 140)})
    assert times.step_us(2) == pytest.approx(120)
    assert times.step_us(16) == pytest.approx(260)


def test_a_line_never_falls_and_needs_no_spread() -> None:
    """More rows are never faster; from one number of rows nothing is known of another."""
    assert StepTimes({1: UnitSum(9, 9 * 200), 8: UnitSum(9, 9 * 100)}).step_us(4) == 150
    assert StepTimes({8: UnitSum(9, 9 * 100)}).step_us(4) == 100


def test_without_a_step_there_is_no_time() -> None:
    with pytest.raises(ValueError, match="no decode step was seen"):
        StepTimes({}).step_us(1)


def test_runs_are_added_up() -> None:
    assert merged({1: UnitSum(1, 10)}, {1: UnitSum(2, 20), 2: UnitSum(1, 15)}) == {1: UnitSum(3, 30), 2: UnitSum(1, 15)}
