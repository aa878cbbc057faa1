"""KV accounts: on all sides or on none, never below zero, and all of it back in the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.accounts import Account, Accounts, Need, Side
from edgeweave.interleave.nouns import KvCapacity

CAPACITIES = st.builds(KvCapacity, block_tokens=st.integers(1, 8), num_blocks=st.integers(1, 40))


def made(edge: KvCapacity, cloud: KvCapacity) -> Accounts:
    """Two accounts with everything free."""
    return Accounts({Side.EDGE: Account(edge), Side.CLOUD: Account(cloud)})


def check(accounts: Accounts) -> None:
    """Free and reserved blocks are all there are."""
    for side in accounts.sides.values():
        assert side.num_free >= 0
        assert side.num_free + sum(side.reserved.values()) == side.capacity.num_blocks


@given(
    edge=CAPACITIES,
    cloud=CAPACITIES,
    events=st.lists(st.tuples(st.sampled_from(["admit", "grow", "edge", "cloud"]), st.integers(1, 40)), max_size=60),
)
def test_accounts_never_go_below_zero_and_come_back_whole(
    edge: KvCapacity, cloud: KvCapacity, events: list[tuple[str, int]]
) -> None:
    """L32: whoever asks first whether blocks are there can reserve them; releasing all gives all back."""
    accounts = made(edge, cloud)
    open_on: dict[int, set[Side]] = {}
    for number, (what, size) in enumerate(events):
        whole = [sequence for sequence, sides in open_on.items() if len(sides) == 2]
        need = Need(size, size + 5)
        if what == "admit" and all(need.blocks_at_admission(s.capacity) <= s.num_free for s in accounts.sides.values()):
            limit = accounts.admit(number, need)
            open_on[number] = set(Side)
            assert size <= limit <= need.max_kv_tokens
        elif what == "grow" and whole and not accounts.missing_blocks(whole[0], num_tokens=size):
            assert accounts.grow(whole[0], num_tokens=size) >= size
        elif what in ("edge", "cloud") and open_on:
            sequence, side = min(open_on), Side(what)
            if side in open_on[sequence]:
                accounts.release(sequence, side=side)
                open_on[sequence].remove(side)
                open_on = {key: sides for key, sides in open_on.items() if sides}
        check(accounts)
    for sequence, sides in open_on.items():
        for side in sides:
            accounts.release(sequence, side=side)
    assert all(side.num_free == side.capacity.num_blocks for side in accounts.sides.values())


@given(edge=CAPACITIES, cloud=CAPACITIES, tokens=st.integers(1, 400))
def test_the_smaller_side_bounds_what_can_ever_be_held(edge: KvCapacity, cloud: KvCapacity, tokens: int) -> None:
    """L30, L32: capacity is the minimum of the sides, each in blocks of its own size."""
    room = min(edge.block_tokens * edge.num_blocks, cloud.block_tokens * cloud.num_blocks)
    assert made(edge, cloud).can_ever_hold(tokens) is (tokens <= room)


def test_what_is_short_is_named_for_each_side() -> None:
    """Both sides are asked; each says how many of its own blocks are missing."""
    accounts = made(KvCapacity(4, 2), KvCapacity(2, 10))
    accounts.admit(1, Need(4, 100))
    assert accounts.missing_blocks(1, num_tokens=8) == {}
    assert accounts.missing_blocks(1, num_tokens=12) == {Side.EDGE: 1}
    assert accounts.missing_blocks(1, num_tokens=24) == {Side.EDGE: 4, Side.CLOUD: 2}


def test_more_than_there_is_cannot_be_reserved() -> None:
    """A caller that did not ask first hears of it, and nothing is taken."""
    accounts = made(KvCapacity(4, 2), KvCapacity(4, 2))
    with pytest.raises(ValueError, match="sequence 1 needs 3 more blocks and 2 are free"):
        accounts.admit(1, Need(9, 9))
    check(accounts)


@pytest.mark.parametrize(("num_reserved", "is_low"), [(95, False), (96, True)])
def test_low_is_less_than_one_in_twenty_free(num_reserved: int, *, is_low: bool) -> None:
    """L10: fewer than 5 % of the blocks of any side."""
    accounts = made(KvCapacity(1, 100), KvCapacity(1, 1000))
    accounts.sides[Side.EDGE].reserve(1, num_blocks=num_reserved)
    assert accounts.is_low is is_low
