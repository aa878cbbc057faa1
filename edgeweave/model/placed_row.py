"""Where one row of a unit is: in the packed tensors, and in the cache."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """Token positions `[start, stop)` of one sequence.

    They are the tokens `[packed_start, packed_stop)` of the unit; position 0 of the sequence lies at token `base` of
    the cache.
    """

    start: int
    stop: int
    packed_start: int
    packed_stop: int
    base: int

    @property
    def num_tokens(self) -> int:
        """Tokens of this row."""
        return self.stop - self.start
