"""Whether the tokens of a run are those of the reference.

Knows token ids and how close a reference came to another choice. Does not know how either was made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from weaving.answers import Answer

TIE = 1e-5
"""Two logits nearer than this may be told apart differently by another order of additions."""
TOKENS_PER_TIE = 10_000
"""At most one tie is allowed in so many tokens, rounded up."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What an output has to be. `margins` say by how much the best logit of each token was above the second."""

    token_ids: tuple[int, ...]
    margins: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """How the outputs of a run compare: tokens that were compared, ties among them, and a line for each difference."""

    num_tokens: int
    num_ties: int
    differences: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether nothing differs but as many ties as are allowed."""
        return not self.differences and self.num_ties <= -(-self.num_tokens // TOKENS_PER_TIE)


def check(answers: Sequence[Answer], references: Sequence[Reference]) -> Check:
    """Compare outputs with their references. After a tie the rest of an output follows another path and is left out."""
    num_tokens, num_ties = 0, 0
    differences = []
    for number, (answer, reference) in enumerate(zip(answers, references, strict=True)):
        index = _first_difference(answer.token_ids, reference.token_ids)
        num_tokens += len(reference.token_ids) if index is None else index
        if index is None:
            continue
        if _is_tie(reference, index):
            num_ties += 1
        else:
            differences.append(f"request {number}: output {index} differs from the reference")
    return Check(num_tokens, num_ties, tuple(differences))


def _first_difference(ours: Sequence[int], theirs: Sequence[int]) -> int | None:
    pairs = enumerate(zip_longest(ours, theirs))
    return next((index for index, (our, their) in pairs if our != their), None)


def _is_tie(reference: Reference, index: int) -> bool:
    margins = reference.margins
    return margins is not None and index < len(margins) and margins[index] < TIE
