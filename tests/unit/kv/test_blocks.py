"""The table of blocks: who owns what, and that moves keep every content."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.nouns import ErrorCode
from edgeweave.kv import BlockRun, BlockTable, Move, OutOfBlocksError

NUM_BLOCKS = 12
Step = tuple[str, int, int]
steps = st.lists(st.tuples(st.sampled_from(["reserve", "free"]), st.integers(0, 4), st.integers(1, 6)), max_size=40)


class Memory:
    """Blocks with content: each owned block holds (sequence, number in its run)."""

    def __init__(self) -> None:
        self.table = BlockTable(NUM_BLOCKS)
        self.blocks: list[tuple[int, int] | None] = [None] * NUM_BLOCKS
        self.owned: dict[int, int] = {}

    def reserve(self, sequence: int, num_blocks: int) -> None:
        moves = self.table.reserve(sequence, num_blocks)
        for move in moves:
            self.blocks[move.target : move.target + move.num_blocks] = self.blocks[
                move.source : move.source + move.num_blocks
            ]
        self.owned[sequence] = max(num_blocks, self.owned.get(sequence, 0))
        run = self.table.run_of(sequence)
        for number in range(run.num_blocks):
            self.blocks[run.start + number] = (sequence, number)

    def content_of(self, sequence: int) -> list[tuple[int, int] | None]:
        run = self.table.run_of(sequence)
        return self.blocks[run.start : run.stop]


@given(steps)
def test_content_survives_every_order_of_reservations(steps: list[Step]) -> None:
    """A sequence finds its content after any moves, owns what it asked for, and only a real shortage fails."""
    memory = Memory()
    for verb, sequence, num_blocks in steps:
        if verb == "free":
            memory.table.free(sequence)
            memory.owned.pop(sequence, None)
        else:
            _reserve_or_fail(memory, sequence, num_blocks)
        for owner, size in memory.owned.items():
            assert memory.content_of(owner) == [(owner, number) for number in range(size)]
        assert memory.table.num_used == sum(memory.owned.values())
        assert len(memory.table) == len(memory.owned)


def _reserve_or_fail(memory: Memory, sequence: int, num_blocks: int) -> None:
    missing = num_blocks - memory.owned.get(sequence, 0)
    if missing <= NUM_BLOCKS - sum(memory.owned.values()):
        memory.reserve(sequence, num_blocks)
        return
    runs = {owner: memory.table.run_of(owner) for owner in memory.owned}
    with pytest.raises(OutOfBlocksError):
        memory.table.reserve(sequence, num_blocks)
    assert runs == {owner: memory.table.run_of(owner) for owner in memory.owned}


def test_a_run_grows_in_place_while_the_next_block_is_free() -> None:
    """No content moves where it need not."""
    table = BlockTable(8)
    assert [table.reserve(1, size) for size in (1, 2, 8)] == [(), (), ()]
    assert table.run_of(1) == BlockRun(0, 8)
    assert table.num_moves == 0


def test_a_new_run_leaves_room_for_the_one_before_it() -> None:
    """Sequences that grow side by side get blocks between them."""
    table = BlockTable(16)
    table.reserve(1, 2)
    table.reserve(2, 2)
    assert table.run_of(2) == BlockRun(8, 10)
    assert (table.reserve(1, 8), table.reserve(2, 8)) == ((), ())


@pytest.mark.parametrize(("num_blocks", "num_distances"), [(1_024, 1), (1_000, 1), (1_777, 2)])
@pytest.mark.parametrize("num_sequences", [2, 4, 8])
def test_sequences_of_a_like_length_lie_equally_far_apart(
    num_blocks: int, num_distances: int, num_sequences: int
) -> None:
    """So that attention takes them with one view, or with few where the memory is far from a power of two."""
    table = BlockTable(num_blocks)
    for sequence in range(num_sequences):
        table.reserve(sequence, 9)
    starts = sorted(table.run_of(sequence).start for sequence in range(num_sequences))
    assert len({after - before for before, after in pairwise(starts)}) <= num_distances
    assert all(table.reserve(sequence, 12) == () for sequence in range(num_sequences))


def test_a_run_that_cannot_lie_a_power_of_two_away_lies_midway() -> None:
    """A long run before the gap leaves no such place."""
    table = BlockTable(16)
    table.reserve(1, 12)
    table.reserve(2, 1)
    assert table.run_of(2) == BlockRun(13, 14)


def test_neighbours_slide_aside_where_no_gap_is_large_enough() -> None:
    """All free blocks together suffice: the runs keep their order, and moves are counted."""
    table = BlockTable(6)
    for sequence in (1, 2, 3):
        table.reserve(sequence, 2)
    table.free(2)
    table.reserve(2, 1)
    num_moves = table.num_moves
    assert table.reserve(1, 3) == (Move(4, 5, 1), Move(2, 3, 2))
    assert [table.run_of(sequence) for sequence in (1, 3, 2)] == [BlockRun(0, 3), BlockRun(3, 5), BlockRun(5, 6)]
    assert table.num_moves == num_moves + 2


def test_a_shortage_says_what_is_missing() -> None:
    """The error names the sequence and the numbers, and carries its code."""
    table = BlockTable(2)
    with pytest.raises(OutOfBlocksError, match="sequence 7 needs 3 more KV blocks and 2 of 2 are free") as caught:
        table.reserve(7, 3)
    assert caught.value.code is ErrorCode.OUT_OF_MEMORY


def test_freeing_twice_changes_nothing() -> None:
    """A release may cross with a finish."""
    table = BlockTable(4)
    table.reserve(1, 2)
    table.free(1)
    table.free(1)
    assert (table.num_used, 1 in table) == (0, False)


def test_a_session_that_ends_leaves_no_blocks() -> None:
    """All come back, whoever owned them: the next session counts its sequences from 1 again."""
    table = BlockTable(4)
    table.reserve(1, 2)
    table.reserve(9, 1)
    table.free_all()
    assert (table.num_used, len(table)) == (0, 0)
    table.reserve(1, 4)
