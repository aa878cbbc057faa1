"""The emulated keys and values: for each sequence, sums over the rows that went by.

One sum for each layer, as each layer of a real model has keys and values of its own, and two more columns at the edge:
of the tokens before the first layer, and of the digests behind the last. Blocks are counted as a real part counts
them, with the same errors.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeweave.emulated.mixing import Words
from edgeweave.interleave.nouns import KvCapacity, Row
from edgeweave.kv import BlockTable

_FIRST_PLACES = 64


@dataclass(frozen=True, slots=True)
class UnitTokens:
    """The tokens of a unit: `positions` [tokens], and by row the place of its sums and its length.

    A sequence has at most one row in a unit.
    """

    positions: Words
    places: NDArray[np.intp]
    lengths: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Sequence[Row], places: Sequence[int]) -> "UnitTokens":
        """Return the tokens of `rows`, whose sums are at `places`."""
        lengths = np.array([row.num_tokens for row in rows], dtype=np.intp)
        positions = np.array([row.start for row in rows], dtype=np.intp)
        if any(row.num_tokens != 1 for row in rows):
            stops = np.cumsum(lengths)
            positions = np.arange(stops[-1]) + np.repeat(positions - stops + lengths, lengths)
        return cls(positions.astype(np.uint64), np.array(places, dtype=np.intp), lengths)

    @property
    def is_step(self) -> bool:
        """Whether each row has one token, which makes rows and tokens the same."""
        return len(self.lengths) == len(self.positions)

    def of_each_row(self, values: Words) -> Words:
        """Return for each token the one of `values` [rows] that is its row's: [tokens]."""
        return values if self.is_step else np.repeat(values, self.lengths)

    def at_end(self, values: Words) -> Words:
        """Return those of `values` [tokens] that are the last of their row: [rows]."""
        return values if self.is_step else values[np.cumsum(self.lengths) - 1]

    def summed(self, values: Words) -> Words:
        """Return the sums of `values` within each row, up to and with each token: [tokens]."""
        if self.is_step:
            return values
        ends = np.cumsum(values, dtype=np.uint64)
        stops = self.at_end(ends)
        before = np.concatenate((np.zeros(1, dtype=np.uint64), stops[:-1]))
        sums: Words = ends - np.repeat(before, self.lengths)
        return sums


class SequenceSums:
    """Sums of all sequences of one side, and the table of their blocks."""

    def __init__(self, capacity: KvCapacity, *, num_columns: int) -> None:
        self.capacity = capacity
        self.table = BlockTable(capacity.num_blocks)
        self._sums = np.zeros((_FIRST_PLACES, num_columns), dtype=np.uint64)
        self._places: dict[int, int] = {}
        self._unused = list(range(_FIRST_PLACES))

    def begin(self, rows: Sequence[Row]) -> UnitTokens:
        """Let the unit of `rows` run next: each sequence gets blocks up to its row's `stop`.

        Raises `OutOfBlocksError` where they do not fit.
        """
        for row in rows:
            self.table.reserve(row.sequence, self.capacity.blocks_for(row.stop))
        return UnitTokens.of(rows, [self._place_of(row.sequence) for row in rows])

    def pass_by(self, tokens: UnitTokens, values: Words, *, column: int) -> Words:
        """Add `values` [tokens] to a column; return for each token the sum up to and with it: [tokens]."""
        sums: Words = tokens.summed(values) + tokens.of_each_row(self._sums[tokens.places, column])
        self._sums[tokens.places, column] = tokens.at_end(sums)
        return sums

    def pass_layers(self, tokens: UnitTokens, values: Words, *, start: int, gains: Words) -> Words:
        """Add `values` to the columns of the layers from `start` on that `gains` are of.

        Returns for each token the sum over these layers of gain times the sum up to and with it: [tokens].
        """
        columns = slice(start, start + len(gains))
        kept = self._sums[tokens.places, columns]  # [rows, layers]
        base = (kept * gains).sum(axis=1, dtype=np.uint64)
        sums = tokens.summed(values)
        self._sums[tokens.places, columns] = kept + tokens.at_end(sums)[:, np.newaxis]
        weighted: Words = tokens.of_each_row(base) + sums * gains.sum(keepdims=True, dtype=np.uint64)
        return weighted

    def free(self, sequences: Iterable[int]) -> None:
        """Give back the blocks of `sequences` and forget their sums; those that own none are ignored."""
        for sequence in sequences:
            self.table.free(sequence)
            place = self._places.pop(sequence, None)
            if place is not None:
                self._sums[place] = 0
                self._unused.append(place)

    def free_all(self) -> None:
        """Give back all blocks and forget all sums."""
        self.free(list(self._places))
        self.table.free_all()

    def _place_of(self, sequence: int) -> int:
        if sequence not in self._places:
            if not self._unused:
                self._unused = list(range(len(self._sums), 2 * len(self._sums)))
                self._sums = np.concatenate((self._sums, np.zeros_like(self._sums)))
            self._places[sequence] = self._unused.pop()
        return self._places[sequence]
