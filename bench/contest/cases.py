"""What every engine of a contest has to do: decode a batch, or take in one long prompt.

Knows lengths and prompts. Does not know engines.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from contest.room import Room
from weaving.loads import FIRST_ID, Prompt

SEED = 7


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of each prompt before decoding, of each output after its first token, and of the prompt of a prefill."""

    prompt_tokens: int = 128
    decoded_tokens: int = 64
    prefill_tokens: int = 1024


@dataclass(frozen=True, slots=True)
class Case:
    """`batch` prompts of `prompt_tokens` each, and outputs of one token and `decoded_tokens` more.

    Without the latter it is a prefill.
    """

    batch: int
    prompt_tokens: int
    decoded_tokens: int

    @property
    def is_decode(self) -> bool:
        """Whether decode steps are measured, and not the way to the first token."""
        return self.decoded_tokens > 0

    @property
    def num_counted_tokens(self) -> int:
        """Tokens whose time is measured: those after the first of all outputs, or those of the prompt."""
        return self.batch * (self.decoded_tokens or self.prompt_tokens)

    def __str__(self) -> str:
        """Name the case in a line or a table."""
        return f"decode, batch {self.batch}" if self.is_decode else f"prefill of {self.prompt_tokens:,}"


def cases_of(batches: Sequence[int], lengths: Lengths) -> list[Case]:
    """Return decoding at each of `batches`, and then the prefill."""
    decodes = [Case(batch, lengths.prompt_tokens, lengths.decoded_tokens) for batch in batches]
    return [*decodes, Case(1, lengths.prefill_tokens, 0)]


def room_for(cases: Sequence[Case]) -> Room:
    """Return the room that holds each of `cases`."""
    return Room(
        max_sequences=max(case.batch for case in cases),
        max_seq_tokens=max(case.prompt_tokens + 1 + case.decoded_tokens for case in cases),
        max_prefill_tokens=max(case.batch * case.prompt_tokens for case in cases),
    )


def prompts_of(case: Case, *, vocab_size: int) -> list[Prompt]:
    """Return the prompts; those of a smaller batch are the first of a larger one."""
    rng = random.Random(f"{SEED} {case.prompt_tokens}")  # noqa: S311 - prompts, no secrets
    return [tuple(rng.randrange(FIRST_ID, vocab_size) for _ in range(case.prompt_tokens)) for _ in range(case.batch)]
