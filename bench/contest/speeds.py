"""From the times of turns to tokens a second, and to ratios of what was measured in the same round.

Knows numbers by engine and round. Does not know how an engine was asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from contest.cases import Case
from contest.engines import Engine
from weaving.ratios import Ratio, paired


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn took, in seconds; `first_s` until all outputs had a token, where the engine tells.

    `cpu_s` is what the process had of its core meanwhile; the rest of the time others had it. `None` where it is not
    one process.
    """

    total_s: float
    first_s: float | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of a figure over rounds, with the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        """Return the spread of `values`; `None` without one."""
        return cls(median(values), min(values), max(values)) if values else None


@dataclass(slots=True)
class Speeds:
    """Tokens a second of one case, by engine and round."""

    case: Case
    by_engine: dict[Engine, dict[int, float]] = field(default_factory=dict)

    def add(self, engine: Engine, tokens_per_s: float | None, *, number: int) -> None:
        """Take what `engine` gave in round `number`; `None`, where noise was larger than the work, is left out."""
        rounds = self.by_engine.setdefault(engine, {})
        if tokens_per_s is not None:
            rounds[number] = tokens_per_s

    def spread(self, engine: Engine) -> Spread | None:
        """Return tokens a second of `engine`; `None` where it was not measured."""
        return Spread.of(list(self.by_engine.get(engine, {}).values()))

    def ratio(self, ours: Engine, theirs: Engine) -> Ratio | None:
        """Return how many times faster one engine is than another; `None` where they share no round."""
        return paired(self.by_engine.get(ours, {}), self.by_engine.get(theirs, {}))

    def step_s(self, engine: Engine) -> float | None:
        """Return the time of a decode step of `engine`, or of the whole prefill."""
        spread = self.spread(engine)
        if spread is None:
            return None
        tokens = self.case.batch if self.case.is_decode else self.case.prompt_tokens
        return tokens / spread.median


def prefill_tokens_per_s(case: Case, turn: Turn) -> float:
    """Return the tokens of the prompt by the time to the first token."""
    return case.num_counted_tokens / (turn.total_s if turn.first_s is None else turn.first_s)


def decode_tokens_per_s(case: Case, whole: Turn, prefill: Turn | None) -> float | None:
    """Return the tokens after the first of each output by the time from first tokens to last.

    Where an engine does not tell when all had their first token, that is the time of a turn that ends there, `prefill`.
    `None` where the whole turn was not longer.
    """
    if whole.first_s is not None:
        begin_s = whole.first_s
    elif prefill is not None:
        begin_s = prefill.total_s
    else:
        raise ValueError("an engine that does not tell its first token has to be asked for it alone")
    return case.num_counted_tokens / (whole.total_s - begin_s) if whole.total_s > begin_s else None


def core_share(turn: Turn) -> float | None:
    """Return the share of the core that an engine had in its turn; `None` where nobody counted."""
    return None if turn.cpu_s is None else turn.cpu_s / turn.total_s
