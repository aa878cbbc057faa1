"""The mix of a load: how long its prompts are, and its answers.

Prompts are known when they are admitted. How long an answer becomes is not, only how long it may become, and which
part of that earlier ones used. Requests that ended lately would say both, but late, and at the start of a load only the
short ones have ended. Does not know what the mix is used for.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.requests import Request

MEMORY = 32
"""The mix is that of about the last 32 requests."""


@dataclass(slots=True)
class _Sums:
    """Sums over requests, of which the latest count most: prompts, and what answers may hold or held, in tokens."""

    num_requests: float = 0.0
    prompt_tokens: float = 0.0
    most_tokens: float = 0.0
    output_tokens: float = 0.0

    def add(self, request: Request) -> None:
        keep = 1.0 - 1.0 / MEMORY
        self.num_requests = self.num_requests * keep + 1.0
        self.prompt_tokens = self.prompt_tokens * keep + len(request.prompt)
        self.most_tokens = self.most_tokens * keep + request.max_tokens
        self.output_tokens = self.output_tokens * keep + len(request.output)


@dataclass(slots=True)
class Mix:
    """Mean lengths in tokens, of requests that were admitted lately; 0 before the first."""

    _admitted: _Sums = field(default_factory=_Sums)
    _ended: _Sums = field(default_factory=_Sums)

    def take_admitted(self, request: Request) -> None:
        """A request is admitted for the first time."""
        self._admitted.add(request)

    def take_ended(self, request: Request) -> None:
        """A request ended by itself: its answer is whole."""
        self._ended.add(request)

    @property
    def mean_prompt(self) -> float:
        """Tokens of a prompt."""
        return self._admitted.prompt_tokens / self._admitted.num_requests if self._admitted.num_requests else 0.0

    @property
    def mean_output(self) -> float:
        """Tokens of an answer: what it may hold, by the share of that which earlier answers used, all if none ended."""
        if not self._admitted.num_requests:
            return 0.0
        used = self._ended.output_tokens / self._ended.most_tokens if self._ended.most_tokens else 1.0
        return used * self._admitted.most_tokens / self._admitted.num_requests
