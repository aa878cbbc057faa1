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
class _Ratio:
    """Two sums over requests, of which the latest count most, one as a multiple of the other."""

    _over: float = 0.0
    _under: float = 0.0

    def add(self, over: float, under: float = 1.0) -> None:
        keep = 1.0 - 1.0 / MEMORY
        self._over, self._under = self._over * keep + over, self._under * keep + under

    def value(self, *, before_any: float) -> float:
        return self._over / self._under if self._under else before_any


@dataclass(slots=True)
class Mix:
    """Mean lengths in tokens, of requests that were admitted lately; 0 before the first."""

    _prompt: _Ratio = field(default_factory=_Ratio)
    _most: _Ratio = field(default_factory=_Ratio)
    _used: _Ratio = field(default_factory=_Ratio)

    def take_admitted(self, request: Request) -> None:
        """A request is admitted for the first time."""
        self._prompt.add(len(request.prompt))
        self._most.add(request.max_tokens)

    def take_ended(self, request: Request) -> None:
        """A request ended by itself: its answer is whole."""
        self._used.add(len(request.output), request.max_tokens)

    @property
    def mean_prompt(self) -> float:
        """Tokens of a prompt."""
        return self._prompt.value(before_any=0.0)

    @property
    def mean_output(self) -> float:
        """Tokens of an answer: what it may hold, by the share of that which earlier answers used, all if none ended."""
        return self._used.value(before_any=1.0) * self._most.value(before_any=0.0)
