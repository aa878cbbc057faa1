"""The sequences that are open on the edge, and which of them are at home.

Knows who is live, whose row comes next, and what a sampled token does to its sequence. Does not know chunks or time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from edgeweave.errors import ProtocolError
from edgeweave.interleave.edge_sequence import EdgeSequence
from edgeweave.interleave.effects import Draw
from edgeweave.interleave.nouns import ExtendSequence, OpenSequence, Row, Sample


@dataclass(slots=True)
class EdgeSequences:
    """Open sequences by number; `home` has those that wait for their next step."""

    open: dict[int, EdgeSequence] = field(default_factory=dict)
    home: set[int] = field(default_factory=set)
    _highest: int = 0

    def create(self, task: OpenSequence) -> None:
        """Open a sequence; numbers rise."""
        if task.sequence <= self._highest:
            raise ProtocolError(f"sequence {task.sequence} is opened after {self._highest}; numbers rise")
        self._highest = task.sequence
        self.open[task.sequence] = EdgeSequence.opened(task)

    def extend(self, event: ExtendSequence) -> None:
        """Raise a limit; one that is gone by now has finished meanwhile, and nothing is raised."""
        sequence = self.open.get(event.sequence)
        if sequence is not None:
            sequence.token_limit = max(sequence.token_limit, event.token_limit)

    def known(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Return those of `numbers` that are open."""
        return tuple(number for number in numbers if number in self.open)

    def close(self, numbers: Iterable[int]) -> None:
        """Forget open sequences."""
        for number in numbers:
            del self.open[number]
            self.home.discard(number)

    def live(self, rows: Iterable[Row]) -> tuple[bool, ...]:
        """Return which rows still count: not those of released or failed sequences, which are skipped.

        Raises:
            ProtocolError: a sequence was never opened.
        """
        numbers = [row.sequence for row in rows]
        if numbers and max(numbers) > self._highest:
            raise ProtocolError(f"sequence {max(numbers)} has a row and was never opened")
        return tuple([self._is_live(number) for number in numbers])

    def fail(self, rows: tuple[Row, ...]) -> tuple[int, ...]:
        """Skip the live sequences of `rows` from now on, and return them; the scheduler will release them."""
        failed = tuple(row.sequence for row, is_live in zip(rows, self.live(rows), strict=True) if is_live)
        for number in failed:
            self.open[number].failed = True
            self.home.discard(number)
        return failed

    def token_ids(self, rows: tuple[Row, ...], live: tuple[bool, ...]) -> tuple[int, ...]:
        """Return the tokens at the positions of the live rows, in order."""
        token_ids: list[int] = []
        for row, is_live in zip(rows, live, strict=True):
            if is_live:
                token_ids += self.open[row.sequence].tokens[row.start : row.stop]
        return tuple(token_ids)

    def advance_heads(self, rows: tuple[Row, ...], live: tuple[bool, ...]) -> None:
        """Take live rows into the KV of the head layers."""
        for row, is_live in zip(rows, live, strict=True):
            if is_live:
                self.open[row.sequence].advance_head(row)

    def advance_tails(self, rows: tuple[Row, ...], live: tuple[bool, ...]) -> tuple[Draw, ...]:
        """Take live rows into the KV of the tail layers; return the draws of those that end what is known."""
        draws = []
        for index, (row, is_live) in enumerate(zip(rows, live, strict=True)):
            if is_live:
                sequence = self.open[row.sequence]
                sequence.advance_tail(row)
                if row.stop == len(sequence.tokens):
                    draws.append(sequence.draw(index))
        return tuple(draws)

    def take_tokens(
        self, rows: tuple[Row, ...], draws: tuple[Draw, ...], token_ids: tuple[int, ...]
    ) -> tuple[Sample, ...]:
        """Append drawn tokens to their sequences."""
        drawn = zip(draws, token_ids, strict=True)
        return tuple([self.open[rows[draw.row].sequence].take(token_id) for draw, token_id in drawn])

    def settle(self, samples: Iterable[Sample]) -> tuple[int, ...]:
        """Bring home what goes on; return what finished. What was released or failed meanwhile is left out."""
        live = [sample for sample in samples if self._is_live(sample.sequence)]
        self.home.update([sample.sequence for sample in live if sample.finish is None])
        return tuple([sample.sequence for sample in live if sample.finish is not None])

    @property
    def any_may_step(self) -> bool:
        """Whether a sequence at home could join a step now."""
        return any(self.open[number].may_step for number in self.home)

    @property
    def num_may_step(self) -> int:
        """How many sequences at home could join a step now."""
        return sum(self.open[number].may_step for number in self.home)

    def next_rows(self, *, rows_away: Iterable[Row], max_steps: int, max_rows: int) -> tuple[Row, ...]:
        """Take the rows of the next step: the oldest sequences first, a fair share of all, in `max_steps` groups.

        By age and not by turns: what decodes goes on to its end, and what is prefilled ahead waits for a free place.
        """
        ready = sorted(number for number in self.home if self.open[number].may_step)
        share = -(-(len(ready) + sum(self.live(rows_away))) // max_steps)
        chosen = ready[: min(share, max_rows)]
        self.home.difference_update(chosen)
        return tuple([self.open[number].step_row for number in chosen])

    def _is_live(self, number: int) -> bool:
        sequence = self.open.get(number)
        return sequence is not None and not sequence.failed
