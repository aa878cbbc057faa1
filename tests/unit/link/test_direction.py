"""When content is due, and when the link asks its reader to pause."""

from hypothesis import given
from hypothesis import strategies as st

from edgeweave.link import LinkProfile
from edgeweave.link.direction import Direction

MS = 1_000_000
PROFILE = LinkProfile.of_delay(5, gbit_per_s=8)  # 1 byte a ns


def _drain(direction: Direction[int]) -> list[tuple[int, int]]:
    """Return content with the first time at which it can leave, in the order of leaving."""
    left = []
    while (due_ns := direction.next_event_ns) is not None:
        assert direction.leave(due_ns - 1) is None
        if (content := direction.leave(due_ns)) is not None:
            left.append((content, due_ns))
        direction.resume(due_ns)
    return left


def test_first_byte_takes_transmission_and_delay() -> None:
    """An idle link delays by its length and by the time that the content takes it."""
    direction: Direction[int] = Direction(PROFILE)
    direction.enter(1, num_bytes=1000, now_ns=7 * MS)
    assert _drain(direction) == [(1, 12 * MS + 1000)]


def test_contents_follow_each_other_at_the_rate() -> None:
    """What enters at once leaves in the same order, each behind the transmission of those before."""
    direction: Direction[int] = Direction(PROFILE)
    for content in range(3):
        direction.enter(content, num_bytes=500, now_ns=0)
    direction.enter(3, num_bytes=500, now_ns=10 * MS)
    assert _drain(direction) == [(0, 5 * MS + 500), (1, 5 * MS + 1000), (2, 5 * MS + 1500), (3, 15 * MS + 500)]


def test_a_full_buffer_pauses_until_a_quarter_has_left() -> None:
    """One bandwidth-delay product may wait; then reading pauses, and goes on when a quarter of it is gone."""
    direction: Direction[int] = Direction(PROFILE)
    assert PROFILE.buffer_bytes == 10 * MS
    direction.enter(0, num_bytes=10 * MS - 1, now_ns=0)
    assert direction.next_event_ns == 15 * MS - 1, "nothing to wait for but the content"
    direction.enter(1, num_bytes=1, now_ns=0)
    assert direction.is_paused
    assert direction.next_event_ns == 2.5 * MS
    assert not direction.resume(2_500_000 - 1)
    assert direction.resume(2_500_000)
    assert not direction.resume(2_500_000)


def test_nothing_waits_on_an_idle_link() -> None:
    """An empty direction has no time to wait for, so that its loop sleeps."""
    assert Direction[int](PROFILE).next_event_ns is None


@given(st.lists(st.tuples(st.integers(0, 3 * MS), st.integers(0, 2 * MS)), max_size=30))
def test_order_and_rate_hold_for_any_arrivals(arrivals: list[tuple[int, int]]) -> None:
    """Content leaves in order, a delay after its last byte has left, and never faster than the rate."""
    direction: Direction[int] = Direction(PROFILE)
    now_ns = 0
    entered_ns = []
    for number, (gap_ns, num_bytes) in enumerate(arrivals):
        now_ns += gap_ns
        entered_ns.append(now_ns)
        direction.enter(number, num_bytes=num_bytes, now_ns=now_ns)
    expected_ns = []
    free_ns = 0
    for (_, num_bytes), start_ns in zip(arrivals, entered_ns, strict=True):
        free_ns = max(free_ns, start_ns) + num_bytes
        expected_ns.append(free_ns + 5 * MS)
    assert _drain(direction) == list(enumerate(expected_ns))
