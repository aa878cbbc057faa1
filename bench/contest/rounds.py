"""Engines take turns: each case in rounds, every other round in reverse, and every token is compared.

Knows the order of things. Does not know how an engine computes, nor how a figure is shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from contest.cases import Case
from contest.engines import EXACT, Engine
from contest.speeds import Speeds, Turn, core_share, decode_tokens_per_s, prefill_tokens_per_s
from contest.verdicts import Verdict, verdict_of
from weaving.checks import Reference
from weaving.loads import Prompt

QUIET_SHARE = 0.95
"""An engine that had less of its core in a turn was disturbed."""
_T = TypeVar("_T")


@dataclass(slots=True)
class Measured:
    """What came of a case: speeds, memory read in bytes a second by round, and the worst verdict on each engine."""

    speeds: Speeds
    memory_bytes_per_s: list[float] = field(default_factory=list)
    verdicts: dict[Engine, Verdict] = field(default_factory=dict)

    def judge(self, engine: Engine, verdict: Verdict) -> None:
        """Keep the verdict if it is the worst of `engine` so far."""
        before = self.verdicts.get(engine)
        if before is None or verdict.num_equal < before.num_equal or (before.is_good and not verdict.is_good):
            self.verdicts[engine] = verdict


@dataclass(frozen=True, slots=True)
class Question:
    """A case with its prompts, and what the outputs have to be."""

    case: Case
    prompts: Sequence[Prompt]
    references: Sequence[Reference]


class Asked(Protocol):
    """A process that is asked for a turn."""

    async def ask(self, request: Mapping[str, Any]) -> Any:
        """Return its answer."""
        ...


@dataclass(frozen=True, slots=True)
class Contest:
    """Engines that are up, by name, and what reads memory.

    `tell` hears a line for each turn; `failures` gets one for each that was not good.
    """

    name: str
    engines: Mapping[Engine, Asked]
    memory: Asked
    tell: Callable[[str], None]
    failures: list[str]

    async def measure(self, question: Question, *, num_rounds: int) -> Measured:
        """Measure one case. The first turns of all engines warm them up and are checked, but do not count."""
        measured = Measured(Speeds(question.case))
        for engine in self.engines:
            await self._turn(engine, question, measured, "warm-up")
        for number in range(num_rounds):
            answer = await self.memory.ask({})
            measured.memory_bytes_per_s.append(answer["bytes_per_s"])
            for engine in round_order(list(self.engines), number=number):
                speed = await self._turn(engine, question, measured, f"round {number + 1}")
                measured.speeds.add(engine, speed, number=number)
        return measured

    async def _turn(self, engine: Engine, question: Question, measured: Measured, when: str) -> float | None:
        """Let `engine` do the case once; return its tokens a second."""
        case, label = question.case, f"{self.name}, {question.case}, {engine}, {when}"
        whole = await self._play(engine, question, measured, 1 + case.decoded_tokens, label=label)
        if not case.is_decode:
            speed: float | None = prefill_tokens_per_s(case, whole)
        elif whole.first_s is not None:
            speed = decode_tokens_per_s(case, whole, None)
        else:
            prefill = await self._play(engine, question, measured, 1, label=label)
            speed = decode_tokens_per_s(case, whole, prefill)
        share = core_share(whole)
        disturbed = f", had {share:.0%} of the core" if share is not None and share < QUIET_SHARE else ""
        self.tell(f"{label}: {'no figure' if speed is None else f'{speed:,.1f} tokens/s'}{disturbed}")
        return speed

    async def _play(
        self, engine: Engine, question: Question, measured: Measured, num_tokens: int, *, label: str
    ) -> Turn:
        answer = await self.engines[engine].ask({"prompts": question.prompts, "num_tokens": num_tokens})
        verdict = verdict_of(answer["outputs"], question.references, num_tokens=num_tokens)
        measured.judge(engine, verdict)
        if engine in EXACT and not verdict.is_good:
            self.failures.append(f"{label}: {verdict.reason}")
        return Turn(answer["total_s"], answer["first_s"], answer["cpu_s"])


def round_order(names: Sequence[_T], *, number: int) -> list[_T]:
    """Return the order of a round: every other one goes backwards, so that none is always the first."""
    return list(reversed(names)) if number % 2 else list(names)
