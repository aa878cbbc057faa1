"""Which run of blocks each sequence owns.

A sequence owns one contiguous run, so that attention reads its keys and values through a plain view. A run grows
in place; where the next block is taken it moves to a gap, and where no gap is large enough its neighbours slide
aside. So a reservation fails only when fewer blocks are free than it needs. The table decides and counts; whoever
owns the memory carries out the moves that `reserve` returns, in their order.

Knows block numbers. Does not know tokens, layers or tensors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgeweave.errors import UnitFailedError
from edgeweave.interleave.nouns import ErrorCode


class OutOfBlocksError(UnitFailedError):
    """A sequence needs more blocks than are free."""

    code = ErrorCode.OUT_OF_MEMORY


@dataclass(frozen=True, slots=True)
class BlockRun:
    """Blocks `[start, stop)`."""

    start: int
    stop: int

    @property
    def num_blocks(self) -> int:
        """Blocks of this run."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Move:
    """The content of `num_blocks` blocks from `source` on belongs at `target`; the two ranges may overlap."""

    source: int
    target: int
    num_blocks: int


class BlockTable:
    """Blocks `[0, num_blocks)` and their owners."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self.num_used = 0
        self.num_moves = 0
        self._runs: dict[int, BlockRun] = {}

    def __contains__(self, sequence: int) -> bool:
        return sequence in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def run_of(self, sequence: int) -> BlockRun:
        """Return the blocks of `sequence`; raise `KeyError` where it owns none."""
        return self._runs[sequence]

    def reserve(self, sequence: int, num_blocks: int) -> Sequence[Move]:
        """Let `sequence` own at least `num_blocks`, and return the moves that make room, in order.

        Raises `OutOfBlocksError`, with the table unchanged, where too few blocks are free.
        """
        owned = self._runs.get(sequence)
        missing = num_blocks - (owned.num_blocks if owned else 0)
        if missing <= 0:
            return ()
        if missing > self.num_blocks - self.num_used:
            raise OutOfBlocksError(
                f"sequence {sequence} needs {missing} more KV blocks and {self.num_blocks - self.num_used} of "
                f"{self.num_blocks} are free; admit fewer sequences or give this side more KV memory"
            )
        moves = self._grow(sequence, owned, num_blocks)
        self.num_used += missing
        self.num_moves += len(moves)
        return moves

    def free(self, sequence: int) -> None:
        """Give back all blocks of `sequence`; nothing happens where it owns none."""
        run = self._runs.pop(sequence, None)
        if run is not None:
            self.num_used -= run.num_blocks

    def free_all(self) -> None:
        """Give back all blocks."""
        self._runs.clear()
        self.num_used = 0

    def _grow(self, sequence: int, owned: BlockRun | None, num_blocks: int) -> Sequence[Move]:
        if owned and self._free_until(owned) >= owned.start + num_blocks:
            self._runs[sequence] = BlockRun(owned.start, owned.start + num_blocks)
            return ()
        gap = max(self._gaps(), key=lambda gap: gap.num_blocks, default=None)
        if gap and gap.num_blocks >= num_blocks:
            self._runs[sequence] = run = _placed(gap, num_blocks, before=self._run_before(gap))
            return (Move(owned.start, run.start, owned.num_blocks),) if owned else ()
        return self._compact(sequence, num_blocks)

    def _free_until(self, run: BlockRun) -> int:
        """Return the first block after `run` that another sequence owns, or the end."""
        return min((r.start for r in self._runs.values() if r.start >= run.stop), default=self.num_blocks)

    def _run_before(self, gap: BlockRun) -> BlockRun | None:
        """Return the run that ends where `gap` begins, if any."""
        return next((run for run in self._runs.values() if run.stop == gap.start), None)

    def _gaps(self) -> Iterator[BlockRun]:
        free_from = 0
        for run in sorted(self._runs.values(), key=lambda run: run.start):
            if run.start > free_from:
                yield BlockRun(free_from, run.start)
            free_from = run.stop
        if self.num_blocks > free_from:
            yield BlockRun(free_from, self.num_blocks)

    def _compact(self, sequence: int, num_blocks: int) -> Sequence[Move]:
        """Pack all runs from block 0 on, in their order, `sequence` with `num_blocks` (last if it is new)."""
        before = self._runs
        order = sorted(before.keys() | {sequence}, key=lambda s: before[s].start if s in before else self.num_blocks)
        after: dict[int, BlockRun] = {}
        start = 0
        for owner in order:
            size = num_blocks if owner == sequence else before[owner].num_blocks
            after[owner] = BlockRun(start, start + size)
            start += size
        self._runs = after
        kept = [owner for owner in order if owner in before]
        return _safe_order([Move(before[s].start, after[s].start, before[s].num_blocks) for s in kept])


def _placed(gap: BlockRun, num_blocks: int, *, before: BlockRun | None) -> BlockRun:
    """Return where in `gap` a run goes, so that it and the run before the gap can both grow in place.

    That is a power of two behind the start of that run, if it can be, and no less than half as much is left for itself:
    sequences of a like length then come to lie equally far apart, which lets attention take several at once. Else it is
    midway.
    """
    if before is None:
        return BlockRun(gap.start, gap.start + num_blocks)
    apart = _power_of_two_within((gap.stop - before.start) * 2 // 3)
    start = before.start + apart
    if start < gap.start or start + num_blocks > gap.stop:
        start = gap.start + (gap.num_blocks - num_blocks) // 2
    return BlockRun(start, start + num_blocks)


def _power_of_two_within(num_blocks: int) -> int:
    """Return the largest power of two up to `num_blocks`, at least 1."""
    return 1 << (max(1, num_blocks).bit_length() - 1)


def _safe_order(moves: Sequence[Move]) -> Sequence[Move]:
    """Order `moves`, given by rising source, so that none writes over content that is still to be moved.

    The layout keeps the order of runs. So those that go down never meet those that go up; the former run from the
    lowest on, the latter from the highest on.
    """
    down = [move for move in moves if move.target < move.source]
    up = [move for move in moves if move.target > move.source]
    return (*down, *reversed(up))
