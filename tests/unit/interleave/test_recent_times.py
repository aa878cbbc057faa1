"""Quantiles over a sliding window: what a plain sort of the times that count would give."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.recent_times import MOST_TIMES, Quantiles, RecentTimes

WINDOW_US = 100
MOST = 5
TOLD = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 50)), max_size=60)
"""Pauses before each time, and the times."""


def plain(times_us: list[int], percent: int) -> int:
    """The shortest time that at least `percent` of all do not exceed, the slow way."""
    ordered = sorted(times_us)
    return ordered[math.ceil(Fraction(percent, 100) * len(ordered)) - 1]


@given(told=TOLD, pause_us=st.integers(0, 150))
def test_quantiles_are_those_of_a_sort(told: list[tuple[int, int]], pause_us: int) -> None:
    """Whatever comes whenever: times older than the window are gone, of the others the newest few count."""
    recent, now_us, all_told = RecentTimes(WINDOW_US, MOST), 0, []
    for delta_us, time_us in told:
        now_us += delta_us
        recent.add(time_us, now_us=now_us)
        all_told.append((now_us, time_us))
    now_us += pause_us
    counting = [time_us for at_us, time_us in all_told[-MOST:] if at_us > now_us - WINDOW_US]
    expected = Quantiles(len(counting), *(plain(counting, percent) for percent in (50, 90, 99))) if counting else None
    assert recent.quantiles(now_us=now_us) == expected


@given(times_us=st.lists(st.integers(0, 1_000), min_size=1, max_size=400))
def test_each_quantile_is_a_time_that_so_many_do_not_exceed(times_us: list[int]) -> None:
    """No time is made up between two others, and the quantiles rise."""
    recent = RecentTimes()
    for time_us in times_us:
        recent.add(time_us, now_us=0)
    quantiles = recent.quantiles(now_us=0)
    assert quantiles is not None
    found = (quantiles.p50_us, quantiles.p90_us, quantiles.p99_us)
    assert list(found) == sorted(found)
    for percent, time_us in zip((50, 90, 99), found, strict=True):
        assert time_us in times_us
        assert 100 * sum(each <= time_us for each in times_us) >= percent * len(times_us)
        assert 100 * sum(each < time_us for each in times_us) < percent * len(times_us)


def test_memory_is_bounded_however_many_come() -> None:
    """A minute of a busy site keeps the newest few thousand."""
    recent = RecentTimes()
    for time_us in range(3 * MOST_TIMES):
        recent.add(time_us, now_us=time_us)
    quantiles = recent.quantiles(now_us=3 * MOST_TIMES)
    assert quantiles is not None
    assert (quantiles.num_times, quantiles.p50_us) == (MOST_TIMES, 3 * MOST_TIMES - MOST_TIMES // 2 - 1)
    assert max(len(recent._told), len(recent._sorted)) == MOST_TIMES  # noqa: SLF001 - memory has no public face


@pytest.mark.parametrize(("now_us", "num_times"), [(WINDOW_US - 1, 2), (WINDOW_US, 1), (WINDOW_US + 1, 0)])
def test_a_time_counts_for_the_length_of_the_window(now_us: int, num_times: int) -> None:
    """From when it was told, to the microsecond."""
    recent = RecentTimes(WINDOW_US)
    recent.add(7, now_us=0)
    recent.add(9, now_us=1)
    quantiles = recent.quantiles(now_us=now_us)
    assert (quantiles.num_times if quantiles else 0) == num_times
