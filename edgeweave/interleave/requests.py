"""Requests and their attempts, as the scheduler sees them.

Knows prompt, output and limits of a request, and how far its present sequence has come. A retry is a new sequence.
"""

from dataclasses import dataclass, field
from enum import Enum

from edgeweave.interleave.accounts import Need, Side
from edgeweave.interleave.nouns import GREEDY, OpenSequence, Sampling


@dataclass(slots=True, eq=False)
class Request:
    """One request. `output` starts with the `num_given` tokens that a resumed request had; times are microseconds.

    `first_token_us` is when the first token came that was sampled here; `None` before.
    """

    request_id: str
    prompt: tuple[int, ...]
    max_tokens: int
    output: list[int] = field(default_factory=list)
    sampling: Sampling = GREEDY
    stop_token_ids: frozenset[int] = frozenset()
    arrived_us: int = 0
    deadline_us: int | None = None
    first_token_us: int | None = None
    is_admitted: bool = False
    num_given: int = field(init=False)

    def __post_init__(self) -> None:
        """Count what was given."""
        self.num_given = len(self.output)

    @property
    def tokens(self) -> tuple[int, ...]:
        """Prompt and output: what a recompute starts from."""
        return (*self.prompt, *self.output)

    @property
    def num_tokens(self) -> int:
        """Tokens of prompt and output."""
        return len(self.prompt) + len(self.output)

    @property
    def max_kv_tokens(self) -> int:
        """Most KV that an attempt can ever hold: the last token that can be sampled never enters it."""
        return len(self.prompt) + self.max_tokens - 1

    @property
    def need(self) -> Need:
        """KV that an attempt takes."""
        return Need(self.num_tokens, self.max_kv_tokens)


class Attempt(Enum):
    """State of a sequence on the scheduler."""

    PREFILLING = "prefilling"
    DECODING = "decoding"
    RELEASING = "releasing"


@dataclass(slots=True, eq=False)
class SchedulerSequence:
    """One attempt at a request. `num_tokens` are known tokens; `issued` counts prefill tokens in chunks so far."""

    number: int
    request: Request
    num_prefill: int
    token_limit: int
    num_tokens: int
    advanced_us: int
    issued: int = 0
    state: Attempt = Attempt.PREFILLING
    unreleased: set[Side] = field(default_factory=set)

    @property
    def max_kv_tokens(self) -> int:
        """Most KV that the sequence can ever hold."""
        return self.request.max_kv_tokens

    @property
    def is_live(self) -> bool:
        """Whether results of this sequence still count."""
        return self.state is not Attempt.RELEASING

    @property
    def may_move(self) -> bool:
        """Whether the edge can step it by itself: its next row lies within the limit."""
        return self.state is Attempt.DECODING and self.num_tokens <= self.token_limit

    def wants_growth(self, *, block_tokens: int) -> bool:
        """Whether it comes within one block of its limit and may need more."""
        is_near = self.token_limit - self.num_tokens < block_tokens
        return is_near and self.state is Attempt.DECODING and self.token_limit < self.max_kv_tokens

    def take(self, token_id: int, *, now_us: int) -> None:
        """Take a sampled token; the prompt is done with the first."""
        self.request.output.append(token_id)
        self.num_tokens += 1
        self.state, self.advanced_us = Attempt.DECODING, now_us

    def opening(self) -> OpenSequence:
        """Return the task that opens this sequence on the edge."""
        request = self.request
        return OpenSequence(
            sequence=self.number,
            token_ids=request.tokens,
            num_prompt_tokens=len(request.prompt),
            sampling=request.sampling,
            stop_token_ids=request.stop_token_ids,
            max_tokens=request.max_tokens,
            token_limit=self.token_limit,
        )
