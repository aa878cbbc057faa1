"""How much an engine has to hold at once, as words of its command line.

Needs nothing but the standard library: an engine of another environment reads them as well.
"""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """The most sequences of a batch, tokens of one sequence, and prompt tokens of one batch."""

    max_sequences: int
    max_seq_tokens: int
    max_prefill_tokens: int

    @classmethod
    def of(cls, given: argparse.Namespace) -> "Room":
        """Return what was read by the parser of `add_room`."""
        return cls(given.max_sequences, given.max_seq_tokens, given.max_prefill_tokens)

    @property
    def words(self) -> list[str]:
        """The words that `add_room` reads."""
        values = (self.max_sequences, self.max_seq_tokens, self.max_prefill_tokens)
        return [word for flag, value in zip(_FLAGS, values, strict=True) for word in (flag, str(value))]


_FLAGS = {
    "--max-sequences": "most sequences of a batch",
    "--max-seq-tokens": "most tokens of a sequence, prompt and output together",
    "--max-prefill-tokens": "most prompt tokens of a batch",
}


def add_room(parser: argparse.ArgumentParser) -> None:
    """Let `parser` read a room."""
    for flag, meaning in _FLAGS.items():
        parser.add_argument(flag, type=int, required=True, help=meaning)
