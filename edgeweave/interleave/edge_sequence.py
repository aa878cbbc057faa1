"""One sequence on the edge: its tokens, its two KV lengths, and when it ends.

Knows how a sampled token becomes a `Sample` with a finish. Does not know chunks or steps.
"""

from dataclasses import dataclass
from enum import Enum

from edgeweave.errors import ProtocolError
from edgeweave.interleave.effects import Draw
from edgeweave.interleave.nouns import FinishReason, OpenSequence, Row, Sample


class Phase(Enum):
    """Where a sequence is: in prefill, waiting here for its next step, or away in a step."""

    PREFILL = "prefill"
    HOME = "home"
    AWAY = "away"


@dataclass(slots=True)
class EdgeSequence:
    """A sequence that is open on the edge. Head and tail layers have KV lengths of their own."""

    task: OpenSequence
    tokens: list[int]
    token_limit: int
    phase: Phase = Phase.PREFILL
    head_length: int = 0
    tail_length: int = 0
    failed: bool = False

    @classmethod
    def opened(cls, task: OpenSequence) -> "EdgeSequence":
        """Return the sequence that `task` creates."""
        return cls(task, list(task.token_ids), task.token_limit)

    @property
    def step_row(self) -> Row:
        """The row of the next step: what was sampled and has no KV yet."""
        return Row(self.task.sequence, self.head_length, len(self.tokens))

    @property
    def may_step(self) -> bool:
        """Whether the next step stays within the reserved KV; otherwise the sequence is parked."""
        return not self.failed and len(self.tokens) <= self.token_limit

    def ends_prefill(self, row: Row) -> bool:
        """Whether `row` holds the last token that is known, so that its tail samples."""
        return row.stop == len(self.tokens)

    def token_ids(self, row: Row) -> list[int]:
        """Return the tokens at the positions of `row`."""
        return self.tokens[row.start : row.stop]

    def draw(self, row: int) -> Draw:
        """Return the draw of the next output token from row number `row` of a piece."""
        return Draw(row, self.task.sampling, len(self.tokens) - self.task.num_prompt_tokens)

    def advance_head(self, row: Row) -> None:
        """Take `row` into the KV of the head layers."""
        self.head_length = self._advanced(row, self.head_length, "head")

    def advance_tail(self, row: Row) -> None:
        """Take `row` into the KV of the tail layers."""
        self.tail_length = self._advanced(row, self.tail_length, "tail")

    def take(self, token_id: int) -> Sample:
        """Append a sampled token and say whether it ends the output."""
        self.tokens.append(token_id)
        index = len(self.tokens) - self.task.num_prompt_tokens - 1
        finish = None
        if token_id in self.task.stop_token_ids:
            finish = FinishReason.STOP
        elif index + 1 >= self.task.max_tokens:
            finish = FinishReason.LENGTH
        return Sample(self.task.sequence, index, token_id, finish)

    def _advanced(self, row: Row, length: int, part: str) -> int:
        if row.start != length:
            raise ProtocolError(
                f"row [{row.start}, {row.stop}) of sequence {row.sequence} meets a {part} KV length of {length}"
            )
        return row.stop
