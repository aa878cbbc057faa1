"""KV accounts: what the scheduler has reserved on each side.

Knows blocks, reservations and capacity. Does not know which physical blocks an engine uses: an
engine has a block for all that was reserved.
"""

from dataclasses import dataclass, field
from enum import Enum

from edgeweave.interleave.nouns import KvCapacity


class Side(Enum):
    """The two sides of the split."""

    EDGE = "edge"
    CLOUD = "cloud"


@dataclass(slots=True)
class Account:
    """The reservations on one side, in blocks."""

    capacity: KvCapacity
    reserved: dict[int, int] = field(default_factory=dict)
    num_free: int = 0

    def __post_init__(self) -> None:
        """Begin with everything free."""
        self.num_free = self.capacity.num_blocks

    @property
    def is_low(self) -> bool:
        """Whether fewer than 5 % of the blocks are free (L10)."""
        return self.num_free * 20 < self.capacity.num_blocks

    def reserve(self, sequence: int, *, num_blocks: int) -> None:
        """Raise the reservation of `sequence` to `num_blocks`. The caller has checked that they are free."""
        more = num_blocks - self.reserved.get(sequence, 0)
        if more > self.num_free:
            raise ValueError(f"sequence {sequence} needs {more} more blocks and {self.num_free} are free")
        self.num_free -= more
        self.reserved[sequence] = num_blocks

    def release(self, sequence: int) -> None:
        """Give back all blocks of `sequence`."""
        self.num_free += self.reserved.pop(sequence)

    def missing(self, sequence: int, *, num_blocks: int) -> int:
        """Return how many blocks are short for raising `sequence` to `num_blocks`; at least 0."""
        return max(0, num_blocks - self.reserved.get(sequence, 0) - self.num_free)


@dataclass(frozen=True, slots=True)
class Need:
    """What a sequence takes: tokens known at its opening, and the most KV that it can ever hold."""

    num_tokens: int
    max_kv_tokens: int

    def blocks_at_admission(self, capacity: KvCapacity) -> int:
        """Blocks for all known tokens and one more block, or for all that it can ever hold if that is less."""
        return min(capacity.blocks_for(self.num_tokens) + 1, capacity.blocks_for(self.max_kv_tokens))


@dataclass(slots=True)
class Accounts:
    """The accounts of all sides that hold KV; a reservation is made on all of them or on none (L32)."""

    sides: dict[Side, Account]
    largest_block: int = field(init=False)
    """Tokens of the largest block of any side."""

    def __post_init__(self) -> None:
        """Look at the sides once; their blocks stay as they are."""
        self.largest_block = max(account.capacity.block_tokens for account in self.sides.values())

    @property
    def is_low(self) -> bool:
        """Whether any side is low on blocks."""
        return any(account.is_low for account in self.sides.values())

    def can_ever_hold(self, num_tokens: int) -> bool:
        """Whether an empty mesh could hold `num_tokens` of one sequence on every side."""
        sides = self.sides.values()
        return all(side.capacity.blocks_for(num_tokens) <= side.capacity.num_blocks for side in sides)

    def admit(self, sequence: int, need: Need) -> int:
        """Reserve for a new sequence; return the KV length that is reserved on every side."""
        for side in self.sides.values():
            side.reserve(sequence, num_blocks=need.blocks_at_admission(side.capacity))
        return min(self.limit(sequence), need.max_kv_tokens)

    def limit(self, sequence: int) -> int:
        """Return the tokens that the reservations of `sequence` hold on every side."""
        return min(side.reserved[sequence] * side.capacity.block_tokens for side in self.sides.values())

    def missing_blocks(self, sequence: int, *, num_tokens: int) -> dict[Side, int]:
        """Return the blocks that are short on each side for raising `sequence` to `num_tokens`."""
        short = {
            name: side.missing(sequence, num_blocks=side.capacity.blocks_for(num_tokens))
            for name, side in self.sides.items()
        }
        return {name: count for name, count in short.items() if count}

    def grow(self, sequence: int, *, num_tokens: int) -> int:
        """Raise the reservations of `sequence` to `num_tokens` on every side; return the tokens they hold now."""
        for side in self.sides.values():
            wanted = side.capacity.blocks_for(num_tokens)
            side.reserve(sequence, num_blocks=max(wanted, side.reserved[sequence]))
        return self.limit(sequence)

    def release(self, sequence: int, *, side: Side) -> None:
        """Give back the blocks of `sequence` on one side."""
        self.sides[side].release(sequence)
