"""One sequence on the edge: its tokens, its two KV lengths, and when it ends.

Knows how a sampled token becomes a `Sample` with a finish. Does not know chunks or steps.
"""

from dataclasses import dataclass

from edgeweave.errors import ProtocolError
from edgeweave.interleave.effects import Draw
from edgeweave.interleave.nouns import FinishReason, OpenSequence, Row, Sample


@dataclass(slots=True)
class EdgeSequence:
    """A sequence that is open on the edge. Head and tail layers have KV lengths of their own.

    A failed one is skipped, and stays open until it is released.
    """

    task: OpenSequence
    tokens: list[int]
    token_limit: int
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
        return len(self.tokens) <= self.token_limit

    def advance_head(self, row: Row) -> None:
        """Take `row` into the KV of the head layers."""
        if row.start != self.head_length:
            raise _gap(row, "head", self.head_length)
        self.head_length = row.stop

    def advance_tail(self, row: Row) -> None:
        """Take `row` into the KV of the tail layers."""
        if row.start != self.tail_length:
            raise _gap(row, "tail", self.tail_length)
        self.tail_length = row.stop

    def draw(self, row: int) -> Draw:
        """Return the draw of the next output token from row number `row` of a piece."""
        return Draw(row, self.task.sampling, len(self.tokens) - self.task.num_prompt_tokens)

    def take(self, token_id: int) -> Sample:
        """Append a sampled token and say whether it ends the output."""
        index = len(self.tokens) - self.task.num_prompt_tokens
        self.tokens.append(token_id)
        finish = None
        if token_id in self.task.stop_token_ids:
            finish = FinishReason.STOP
        elif index + 1 >= self.task.max_tokens:
            finish = FinishReason.LENGTH
        return Sample(self.task.sequence, index, token_id, finish)


def _gap(row: Row, part: str, length: int) -> ProtocolError:
    return ProtocolError(
        f"row [{row.start}, {row.stop}) of sequence {row.sequence} meets a {part} KV length of {length}"
    )
