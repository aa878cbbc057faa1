"""Whether what an engine generated is what `transformers.generate` says of each prompt alone.

Knows token ids. Does not know which engines have to be exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from weaving.answers import Answer
from weaving.checks import Reference, check


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many outputs are those of the reference; `reason` says what is wrong where it is more than a tie allows."""

    num_equal: int
    num_outputs: int
    reason: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing differs but as many ties as are allowed."""
        return self.reason is None

    def __str__(self) -> str:
        """Say how many are equal."""
        return f"{self.num_equal} of {self.num_outputs}"


def verdict_of(outputs: Sequence[Sequence[int]], references: Sequence[Reference], *, num_tokens: int) -> Verdict:
    """Compare `outputs` with the first `num_tokens` of each of `references`."""
    due = [_first_of(reference, num_tokens) for reference in references]
    checked = check([_answer(output) for output in outputs], due)
    num_equal = sum(tuple(output) == each.token_ids for output, each in zip(outputs, due, strict=True))
    reason = None if checked.is_good else "; ".join(checked.differences[:3]) or f"{checked.num_ties} ties"
    return Verdict(num_equal, len(due), reason)


def _first_of(reference: Reference, num_tokens: int) -> Reference:
    margins = reference.margins
    return Reference(reference.token_ids[:num_tokens], None if margins is None else margins[:num_tokens])


def _answer(output: Sequence[int]) -> Answer:
    """Return `output` as an answer of which only the tokens are known."""
    return Answer(submitted_us=0, num_prompt_tokens=0, token_ids=tuple(output), token_us=())
