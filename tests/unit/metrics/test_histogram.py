"""A histogram counts each value once, in the bucket whose bound it does not exceed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.metrics.families import histogram
from edgeweave.metrics.histogram import Histogram
from edgeweave.metrics.metric import By, Source

SECONDS = By(Source.SCHEDULER).histogram("edgeweave:x_seconds", "seconds", "X.", bounds=(0.001, 0.5, 1))
ROWS = By(Source.SCHEDULER).histogram("edgeweave:x_rows", "rows", "X.", bounds=(1, 2, 4))


@pytest.mark.parametrize(
    ("value_us", "bucket"), [(0, 0), (999, 0), (1000, 0), (1001, 1), (500_000, 1), (1_000_000, 2), (1_000_001, 3)]
)
def test_a_bound_belongs_to_its_bucket(value_us: int, bucket: int) -> None:
    """Times are observed in microseconds, bounds are seconds; values above all bounds have a bucket too."""
    times = Histogram(SECONDS)
    times.observe(value_us)
    assert times.counts == [int(place == bucket) for place in range(4)]
    assert times.sum == value_us / 1e6


def test_what_is_not_time_keeps_its_unit() -> None:
    """Rows are rows."""
    rows = Histogram(ROWS)
    for value in (1, 2, 3, 9):
        rows.observe(value)
    assert (rows.counts, rows.sum, rows.num_observed) == ([1, 1, 1, 1], 15.0, 4)


@given(st.lists(st.integers(0, 2_000_000)))
def test_buckets_are_told_cumulated(values: list[int]) -> None:
    """Each bucket holds all values up to its bound, the last all of them, and its count is that of the histogram."""
    times = Histogram(SECONDS)
    for value in values:
        times.observe(value)
    samples = {(sample.name, sample.labels.get("le")): sample.value for sample in histogram(times).samples}
    for bound in SECONDS.bounds:
        told = samples["edgeweave:x_seconds_bucket", str(float(bound))]
        assert told == sum(value <= bound * 1e6 for value in values)
    assert samples["edgeweave:x_seconds_bucket", "+Inf"] == samples["edgeweave:x_seconds_count", None] == len(values)
    assert samples["edgeweave:x_seconds_sum", None] == pytest.approx(sum(values) / 1e6)
