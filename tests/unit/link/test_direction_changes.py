"""What becomes of content that is on its way when the link changes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgeweave.link import LinkProfile
from edgeweave.link.direction import Direction

MS = 1_000_000
PROFILE = LinkProfile.of_delay(5, gbit_per_s=8)  # 1 byte a ns
SLOWER = LinkProfile.of_delay(5, gbit_per_s=4)
LONGER = LinkProfile.of_delay(15, gbit_per_s=8)


def _due_ns(direction: Direction[int]) -> list[int]:
    """Return when each content leaves, in the order of leaving."""
    due = []
    while (due_ns := direction.next_event_ns) is not None:
        if direction.leave(due_ns) is not None:
            due.append(due_ns)
        direction.resume(due_ns)
    return due


def _two_ms_each(profile: LinkProfile = PROFILE) -> Direction[int]:
    """Return a direction with three contents that take 2 ms each at the near end, from time 0."""
    direction: Direction[int] = Direction(profile)
    for content in range(3):
        direction.enter(content, num_bytes=2 * MS, now_ns=0)
    return direction


def test_a_longer_link_is_longer_for_what_has_not_left_the_near_end() -> None:
    direction = _two_ms_each()
    direction.change(LONGER, now_ns=2 * MS)
    assert _due_ns(direction) == [7 * MS, 19 * MS, 21 * MS]


def test_a_shorter_link_lets_nothing_overtake() -> None:
    """What would be there first arrives together with what is in front of it."""
    direction = _two_ms_each(LONGER)
    direction.change(PROFILE, now_ns=2 * MS)
    assert _due_ns(direction) == [17 * MS, 17 * MS, 17 * MS]
    direction.enter(3, num_bytes=MS, now_ns=20 * MS)
    assert _due_ns(direction) == [26 * MS]


def test_a_slower_link_is_slower_for_what_is_left_of_a_piece_and_for_all_behind() -> None:
    direction = _two_ms_each()
    direction.change(SLOWER, now_ns=3 * MS)
    assert _due_ns(direction) == [7 * MS, 10 * MS, 14 * MS]
    direction.change(PROFILE, now_ns=20 * MS)
    direction.enter(3, num_bytes=MS, now_ns=20 * MS)
    assert _due_ns(direction) == [26 * MS]


def test_a_faster_link_ends_a_pause_sooner() -> None:
    """The buffer of the new link is one of its own bandwidth-delay products."""
    direction: Direction[int] = Direction(SLOWER)
    direction.enter(0, num_bytes=5 * MS, now_ns=0)
    assert direction.is_paused
    assert direction.next_event_ns == 2.5 * MS
    direction.change(PROFILE, now_ns=MS)
    assert direction.resume(MS)


def test_a_stall_holds_what_has_not_left_and_not_what_is_under_way() -> None:
    direction = _two_ms_each()
    direction.stall(10 * MS, now_ns=3 * MS)
    assert _due_ns(direction) == [7 * MS, 19 * MS, 21 * MS]


def test_a_stall_of_an_idle_link_holds_what_comes_during_it() -> None:
    direction: Direction[int] = Direction(PROFILE)
    direction.stall(10 * MS, now_ns=3 * MS)
    direction.enter(0, num_bytes=0, now_ns=4 * MS)
    assert _due_ns(direction) == [18 * MS]


def test_a_cleared_direction_is_free_at_once() -> None:
    direction = _two_ms_each()
    direction.clear()
    assert direction.next_event_ns is None
    direction.enter(3, num_bytes=MS, now_ns=MS)
    assert _due_ns(direction) == [7 * MS]


def test_jitter_is_within_its_bound_and_the_same_for_the_same_seed() -> None:
    unsteady = replace(PROFILE, jitter_ns=2 * MS)

    def extra_ns(seed: str) -> list[int]:
        direction: Direction[int] = Direction(unsteady, seed=seed)
        for content in range(50):
            direction.enter(content, num_bytes=0, now_ns=content * 10 * MS)
        return [due_ns - (content * 10 + 5) * MS for content, due_ns in enumerate(_due_ns(direction))]

    drawn = extra_ns("1")
    assert drawn == extra_ns("1") != extra_ns("2")
    assert 0 <= min(drawn) < 0.2 * MS
    assert 1.8 * MS < max(drawn) <= 2 * MS


def test_random_stalls_are_as_frequent_and_as_long_as_asked() -> None:
    """Two a second of 50 ms each hold content back for a tenth of the time."""
    unsteady = replace(PROFILE, stalls_per_s=2.0, stall_ns=50 * MS)
    direction: Direction[int] = Direction(unsteady)
    for content in range(100_000):  # a thousand seconds
        direction.enter(content, num_bytes=0, now_ns=content * 10 * MS)
    late = [due_ns > (content * 10 + 5) * MS for content, due_ns in enumerate(_due_ns(direction))]
    assert 0.09 < sum(late) / len(late) < 0.11
    begins = sum(is_late and not was_late for was_late, is_late in zip([False, *late], late, strict=False))
    assert 1600 < begins < 2100, "some are shorter than the gaps between contents"


def test_stalls_while_nothing_is_sent_hold_nobody_up() -> None:
    unsteady = replace(PROFILE, stalls_per_s=2.0, stall_ns=MS)
    direction: Direction[int] = Direction(unsteady)
    direction.enter(0, num_bytes=0, now_ns=0)
    direction.enter(1, num_bytes=0, now_ns=3600 * 1000 * MS)
    assert _due_ns(direction)[1] < (3600 * 1000 + 5 + 20) * MS


EVENTS = st.one_of(
    st.tuples(st.just("enter"), st.integers(0, 2 * MS)),
    st.tuples(st.just("delay"), st.integers(0, 20)),
    st.tuples(st.just("rate"), st.integers(1, 20)),
    st.tuples(st.just("stall"), st.integers(0, 5 * MS)),
)


@given(st.lists(st.tuples(st.integers(0, 3 * MS), EVENTS), max_size=40), st.integers(0, 3 * MS))
def test_nothing_overtakes_and_nothing_is_lost(events: list[tuple[int, tuple[str, int]]], jitter_ns: int) -> None:
    """Whatever changes when, with jitter and stalls: contents leave once each, in order, no sooner than they came."""
    profile = replace(PROFILE, jitter_ns=jitter_ns, stalls_per_s=20.0, stall_ns=MS)
    direction: Direction[int] = Direction(profile)
    now_ns = 0
    came_ns: list[int] = []
    left: list[int] = []

    def leave(until_ns: int) -> None:
        while (due_ns := direction.next_event_ns) is not None and due_ns <= until_ns:
            if (content := direction.leave(due_ns)) is not None:
                left.append(content)
                assert due_ns >= came_ns[content]
            direction.resume(due_ns)

    for gap_ns, (kind, amount) in events:
        leave(now_ns := now_ns + gap_ns)
        match kind:
            case "enter":
                came_ns.append(now_ns)
                direction.enter(len(came_ns) - 1, num_bytes=amount, now_ns=now_ns)
            case "stall":
                direction.stall(amount, now_ns=now_ns)
            case _:
                changed = {"delay_ns": amount * MS} if kind == "delay" else {"bytes_per_s": amount * 100_000_000}
                profile = replace(profile, **changed)
                direction.change(profile, now_ns=now_ns)
    leave(now_ns + 3600 * 1000 * MS)
    assert left == list(range(len(came_ns)))
