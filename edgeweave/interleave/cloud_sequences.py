"""The sequences whose KV is open in the cloud, and how long each is.

Knows numbers and lengths, and that a row must begin where its sequence ends. Does not know chunks, steps or time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import Row


@dataclass(slots=True)
class CloudSequence:
    """One sequence. A failed one keeps its KV until it is released, and is skipped."""

    length: int = 0
    decodes: bool = False
    failed: bool = False

    def advance(self, row: Row) -> None:
        """Take `row` into the KV; ProtocolError if it does not begin where the sequence ends."""
        if row.start != self.length:
            raise ProtocolError(
                f"row [{row.start}, {row.stop}) of sequence {row.sequence} meets a KV length of {self.length}"
            )
        self.length = row.stop


@dataclass(slots=True)
class CloudSequences:
    """Open sequences by number. Numbers rise, so that one which is gone is known from one that never was."""

    open: dict[int, CloudSequence] = field(default_factory=dict)
    _highest: int = 0

    def create(self, rows: Iterable[Row]) -> None:
        """Open the sequences of `rows` that are new.

        Raises:
            ProtocolError: a new sequence does not begin at its first token.
        """
        for row in rows:
            if row.sequence <= self._highest:
                continue
            if row.start != 0:
                raise ProtocolError(f"sequence {row.sequence} begins at token {row.start}; a new one begins at 0")
            self._highest = row.sequence
            self.open[row.sequence] = CloudSequence()

    def release(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Forget sequences; return those that were open."""
        return tuple(number for number in numbers if self.open.pop(number, None) is not None)

    @property
    def any_decodes(self) -> bool:
        """Whether a sequence that still counts was in a step, so that another step with it is on its way."""
        return any(sequence.decodes and not sequence.failed for sequence in self.open.values())

    def start_decode(self, rows: Iterable[Row]) -> None:
        """Note that the sequences of `rows` that are open were in a step."""
        for row in rows:
            sequence = self.open.get(row.sequence)
            if sequence is not None:
                sequence.decodes = True

    def live(self, rows: Iterable[Row]) -> tuple[bool, ...]:
        """Return which rows still count: not those of released or failed sequences, which are skipped.

        Raises:
            ProtocolError: a sequence was never created.
        """
        numbers = [row.sequence for row in rows]
        if numbers and max(numbers) > self._highest:
            raise ProtocolError(f"sequence {max(numbers)} has a row and was never created")
        return tuple([self._is_live(number) for number in numbers])

    def fail(self, rows: Iterable[Row], live: Iterable[bool]) -> tuple[int, ...]:
        """Skip the live sequences of `rows` from now on, and return them."""
        failed = tuple(row.sequence for row, is_live in zip(rows, live, strict=True) if is_live)
        for number in failed:
            self.open[number].failed = True
        return failed

    def advance(self, rows: Iterable[Row], live: Iterable[bool]) -> None:
        """Take live rows into the KV.

        Raises:
            ProtocolError: a row does not begin where its sequence ends.
        """
        for row, is_live in zip(rows, live, strict=True):
            if is_live:
                self.open[row.sequence].advance(row)

    def _is_live(self, number: int) -> bool:
        sequence = self.open.get(number)
        return sequence is not None and not sequence.failed
