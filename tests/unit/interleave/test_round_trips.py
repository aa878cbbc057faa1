"""The round trip that a session believes in."""

from edgeweave.interleave.round_trips import RECENT, RoundTrips


def seen(trips: RoundTrips, *rests_us: int, first: int = 1) -> RoundTrips:
    """Let steps go that take 30 in the cloud; halves come in either order."""
    for step, rest_us in enumerate(rests_us, start=first):
        if step % 2:
            trips.take_away(step, 30 + rest_us)
        trips.take_inside(step, 30)
        if not step % 2:
            trips.take_away(step, 30 + rest_us)
    return trips


def test_until_a_step_is_known_the_warm_up_counts() -> None:
    """One half of a step says nothing."""
    trips = RoundTrips(100)
    trips.take_away(1, 500)
    assert trips.shortest_us == 100


def test_waits_in_the_cloud_are_no_trip() -> None:
    """A step may wait for prefill; the shortest rest did not."""
    assert seen(RoundTrips(100), 130, 120, 190).shortest_us == 120


def test_a_shorter_link_is_noticed_at_once_and_a_longer_one_soon() -> None:
    """What is old is forgotten."""
    trips = seen(RoundTrips(100), *[100] * 10)
    assert seen(trips, 40, first=11).shortest_us == 40
    assert seen(trips, *[300] * RECENT, first=12).shortest_us == 300


def test_halves_that_stay_alone_are_forgotten() -> None:
    """A step that failed on one side leaves nothing for ever."""
    trips = RoundTrips()
    for step in range(10 * RECENT):
        trips.take_away(step, 1)
    trips.take_inside(3, 1)
    assert trips.shortest_us == 0
