"""Which runs of the bench are at work together."""

import asyncio

import pytest

from weaving.places import ONE_PLACE, Place
from weaving.shares import Machine, shares_of


@pytest.mark.parametrize(
    ("place", "is_pinned", "expected"),
    [
        (ONE_PLACE, False, 4),
        (Place(0.0), False, 4),
        (Place(1000.0), False, 4),
        (Place(3000.0), False, 2),
        (Place(10_000.0), False, 1),
        (Place(10_000.0), True, 4),
    ],
)
def test_only_far_meshes_of_emulated_engines_leave_room_for_another(
    place: Place,
    is_pinned: bool,  # noqa: FBT001 - a parameter of the test
    expected: int,
) -> None:
    """Where steps come back soon, and where engines compute, the cores are needed."""
    assert shares_of(place, is_pinned=is_pinned) == expected


async def test_who_needs_the_whole_machine_waits_until_nobody_is_at_work() -> None:
    """Those that leave room are at work together; who needs all of it is alone."""
    machine, at_work, seen = Machine(), 0, []

    async def work(num_shares: int) -> None:
        nonlocal at_work
        async with machine.share(num_shares):
            at_work += num_shares
            seen.append(at_work)
            await asyncio.sleep(0)
            at_work -= num_shares

    await asyncio.gather(work(2), work(1), work(1), work(4), work(2))
    assert sorted(seen[:3]) == [2, 3, 4]
    assert max(seen) == 4
    assert len(seen) == 5
