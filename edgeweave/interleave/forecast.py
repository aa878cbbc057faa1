"""What the body would give with other counts in flight: measured times and the mix of the load, joined.

Knows how long groups of rows take to go round, and what prefill belongs to them. Decides nothing.
"""

import math
from dataclasses import dataclass

from edgeweave.interleave.measures import Measures

SCARCE, AMPLE = 0.8, 1.2
"""Other work during a decode return, as a share of it, up to which prefill is scarce, and from which it is ample."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What is open. Counts of requests, rows and tokens.

    `open_requests` wait, are prefilled or decode; `decode_rows` of them are through their prefill. A mean prompt has
    `mean_prompt` tokens, an answer `mean_output`.
    `waiting_tokens` are not through the body yet. A chunk has `chunk_tokens`. A step holds up to `max_rows`;
    `max_steps` and `max_prefills` are in flight now. A chunk holds at most `most_tokens` of a prompt; `fuses` says
    whether rows ride in chunks now.
    """

    open_requests: int
    decode_rows: int
    mean_prompt: float
    mean_output: float
    waiting_tokens: int
    chunk_tokens: int
    max_rows: int
    max_steps: int
    max_prefills: int
    most_tokens: int | None = None
    fuses: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a load asks of the body, in microseconds, and what it gives."""

    measures: Measures
    queue: Queue

    @property
    def chunk_us(self) -> float:
        """The body of one chunk."""
        return self._prefill_us(self.queue.chunk_tokens)

    @property
    def prompt_us(self) -> float:
        """The body of one prompt of mean length."""
        return self._prefill_us(self.queue.mean_prompt)

    def surplus_us(self, *, stock: float) -> float:
        """Return the body of what waits beyond `stock` mean prompts."""
        return self._prefill_us(max(0.0, self.queue.waiting_tokens - stock * self.queue.mean_prompt))

    @property
    def first_token_us(self) -> float:
        """How long a prompt that comes now waits for its first token at least: what is before it, and one handoff."""
        return self._prefill_us(self.queue.waiting_tokens) + self.measures.handoff_us(self.queue.chunk_tokens)

    @property
    def prefill_per_row_us(self) -> float:
        """Prefill that belongs to each row of a step."""
        if self.queue.fuses:  # chunks are cut to be ridden in, and would not be if none were
            return self.prefill_us(self.prompt_per_row, chunk_tokens=self.whole_tokens)
        return self._prefill_us(self.prompt_per_row)

    @property
    def prompt_per_row(self) -> float:
        """Tokens of prompts that belong to each row of a step."""
        return self.queue.mean_prompt / max(1.0, self.queue.mean_output)

    @property
    def whole_tokens(self) -> int:
        """Tokens of a chunk that is not cut to be ridden in: a whole prompt, as far as one fits."""
        if self.queue.most_tokens is None:
            return max(1, self.queue.chunk_tokens)
        return max(1, self.queue.chunk_tokens, min(self.queue.most_tokens, round(self.queue.mean_prompt)))

    def prefill_us(self, num_tokens: float, *, chunk_tokens: int) -> float:
        """Return the time of the body for `num_tokens`, in chunks of `chunk_tokens`."""
        return self.measures.prefill_us(num_tokens, chunk_tokens=chunk_tokens)

    def rows_per_s(self, *, max_steps: int, max_prefills: int) -> float:
        """Return how many rows a second go through the body, with the prefill that belongs to them.

        A round is every group once. It lasts as long as the body works, or as a step and its return, or as prefill
        needs to come: `max_prefills` chunks each time that one has gone through the body and the next has come.
        """
        rows = min(self.groups(max_steps) * self.rows(max_steps), max(1, self._steppable))
        away_us = self.step_us(max_steps) + self.measures.decode_return_us
        handoff_us = self.measures.handoff_us(self.queue.chunk_tokens)
        come_us = rows * self.prefill_per_row_us * (self.chunk_us + handoff_us) / max(1.0, max_prefills * self.chunk_us)
        round_us = max(self._busy_us(max_steps), away_us, come_us)
        return rows * 1e6 / round_us if round_us > 0 else 0.0

    def scarcity(self, max_steps: int) -> float:
        """Return how scarce other work is during a decode return: 0 where it is ample, to 1."""
        if self.measures.decode_return_us <= 0:
            return 0.0
        covered = (self._busy_us(max_steps) - self.step_us(max_steps)) / self.measures.decode_return_us
        return min(1.0, max(0.0, (AMPLE - covered) / (AMPLE - SCARCE)))

    def _prefill_us(self, num_tokens: float) -> float:
        """Return the time of the body for `num_tokens`, in chunks as they are lately."""
        return self.measures.prefill_us(num_tokens, chunk_tokens=self.queue.chunk_tokens)

    @property
    def _steppable(self) -> int:
        """Requests that could be in a step, if there were places: all but as many as chunks in flight hold."""
        return max(self.queue.decode_rows, self.queue.open_requests - self.queue.max_prefills)

    def groups(self, max_steps: int) -> int:
        """Groups that have a row."""
        return max(1, min(max_steps, self._steppable))

    def rows(self, max_steps: int) -> int:
        """Rows of each step when what is through its prefill is shared among the groups."""
        share = math.ceil(self._steppable / self.groups(max_steps))
        return max(1, min(self.queue.max_rows, share))

    def step_us(self, max_steps: int) -> float:
        """Return the time of one group's step."""
        return self.measures.step_by_rows.at(self.rows(max_steps))

    def _busy_us(self, max_steps: int) -> float:
        """Work of the body in a round."""
        return self.groups(max_steps) * (self.step_us(max_steps) + self.rows(max_steps) * self.prefill_per_row_us)
