"""How the clocks of the engines are told in that of the site."""

from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.accounts import Side
from edgeweave.tracing.clocks import Clocks

OFFSETS = st.integers(-(10**15), 10**15)
TRIPS = st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)), min_size=1, max_size=40)


@given(edge_us=OFFSETS, cloud_us=OFFSETS, one_way_us=st.integers(1, 100_000), queues=TRIPS)
def test_a_step_that_met_no_queue_tells_the_clocks_apart(
    edge_us: int, cloud_us: int, one_way_us: int, queues: list[tuple[int, int]]
) -> None:
    """Clocks begin anywhere; one clean trip each way, not of the same step, is enough to know both to a microsecond."""
    clocks = Clocks()
    clocks.take_report(Side.EDGE, clock_us=1000 + edge_us, now_us=1000)
    for up_us, down_us in [(0, 77), *queues, (99, 0)]:
        arrived_us = 5000 + one_way_us + up_us
        answered_us = arrived_us + 3000
        clocks.take_trip(
            sent_us=5000 + edge_us,
            arrived_us=arrived_us + cloud_us,
            answered_us=answered_us + cloud_us,
            returned_us=answered_us + one_way_us + down_us + edge_us,
        )
    assert clocks.site_us(Side.EDGE, 7000 + edge_us) == 7000
    assert abs(clocks.site_us(Side.CLOUD, 7000 + cloud_us) - 7000) <= 1


def test_before_a_step_went_round_a_report_is_taken_to_come_by_half_of_the_round_trip() -> None:
    clocks = Clocks(rtt_us=10_000)
    assert clocks.offset_us(Side.CLOUD) is None
    clocks.take_report(Side.CLOUD, clock_us=100, now_us=5_400)
    clocks.take_report(Side.CLOUD, clock_us=200, now_us=9_000)
    assert clocks.site_us(Side.CLOUD, 100) == 400, "the report that came soonest counts"
