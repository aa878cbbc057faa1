"""Which runs of the bench are at work together."""

import asyncio

import pytest

from weaving.places import ONE_PLACE, Place
from weaving.shares import Machine, shares_of


@pytest.mark.parametrize(
    ("place", "is_pinned", "expected"),
    [
        (ONE_PLACE, False, 2),
        (Place(0.0), False, 2),
        (Place(1000.0), False, 2),
        (Place(3000.0), False, 1),
        (Place(10_000.0), False, 1),
        (Place(10_000.0), True, 2),
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
    """Two that need half of it are at work together; the third waits for both."""
    machine, at_work, seen = Machine(), 0, []

    async def work(num_shares: int) -> None:
        nonlocal at_work
        async with machine.share(num_shares):
            at_work += num_shares
            seen.append(at_work)
            await asyncio.sleep(0)
            at_work -= num_shares

    await asyncio.gather(work(1), work(1), work(2), work(1))
    assert sorted(seen[:2]) == [1, 2]
    assert max(seen) == 2
    assert len(seen) == 4
