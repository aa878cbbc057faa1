"""Turns of engines that are played by numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contest.cases import Case
from contest.engines import Engine
from contest.rounds import Contest, Measured, Question, round_order
from contest.speeds import Speeds
from contest.verdicts import Verdict
from weaving.checks import Reference

DECODE = Question(Case(batch=1, prompt_tokens=2, decoded_tokens=4), [(3, 4)], [Reference((1, 2, 3, 4, 5))])
PREFILL = Question(Case(batch=1, prompt_tokens=2, decoded_tokens=0), [(3, 4)], [Reference((1,))])


@dataclass
class _Engine:
    """Takes a second for its prompts and `token_s` for each token after the first; says so in `log`."""

    name: str
    log: list[str]
    token_s: float = 0.5
    tells_first: bool = False
    output: list[int] = field(default_factory=lambda: [1, 2, 3, 4, 5])

    async def ask(self, request: Mapping[str, Any]) -> Any:
        num_tokens = request["num_tokens"]
        self.log.append(f"{self.name} {num_tokens}")
        total_s = 1.0 + self.token_s * (num_tokens - 1)
        first_s = 1.0 if self.tells_first else None
        return {"outputs": [self.output[:num_tokens]], "total_s": total_s, "first_s": first_s, "cpu_s": None}


class _Memory:
    async def ask(self, _request: Mapping[str, Any]) -> Any:
        return {"bytes_per_s": 1e9}


def _contest(engines: Mapping[Engine, _Engine], failures: list[str]) -> Contest:
    return Contest("tiny", engines, _Memory(), lambda _: None, failures)


async def test_engines_alternate_after_a_warm_up() -> None:
    log: list[str] = []
    engines = {
        Engine.OURS: _Engine("ours", log, token_s=0.25, tells_first=True),
        Engine.GENERATE: _Engine("generate", log),
    }
    measured = await _contest(engines, []).measure(DECODE, num_rounds=2)
    generate = ["generate 5", "generate 1"]
    assert log == [*("ours 5", *generate), *("ours 5", *generate), *(*generate, "ours 5")]
    assert measured.speeds.by_engine == {Engine.OURS: {0: 4.0, 1: 4.0}, Engine.GENERATE: {0: 2.0, 1: 2.0}}
    assert measured.memory_bytes_per_s == [1e9, 1e9]
    assert [str(verdict) for verdict in measured.verdicts.values()] == ["1 of 1", "1 of 1"]


async def test_a_prefill_is_one_turn_of_one_token() -> None:
    log: list[str] = []
    measured = await _contest({Engine.GENERATE: _Engine("generate", log)}, []).measure(PREFILL, num_rounds=1)
    assert log == ["generate 1", "generate 1"]
    assert measured.speeds.by_engine == {Engine.GENERATE: {0: 2.0}}


async def test_only_what_has_to_be_exact_fails_by_its_tokens() -> None:
    failures: list[str] = []
    engines = {engine: _Engine(engine, [], output=[1, 2, 9, 4, 5]) for engine in (Engine.OURS, Engine.VLLM)}
    engines[Engine.OURS].tells_first = True
    measured = await _contest(engines, failures).measure(DECODE, num_rounds=1)
    assert failures == [
        f"tiny, decode, batch 1, ours, {when}: request 0: output 2 differs from the reference"
        for when in ("warm-up", "round 1")
    ]
    assert {engine: str(verdict) for engine, verdict in measured.verdicts.items()} == {
        Engine.OURS: "0 of 1",
        Engine.VLLM: "0 of 1",
    }


def test_the_worst_verdict_stays() -> None:
    measured = Measured(Speeds(DECODE.case))
    for verdict in (Verdict(2, 2), Verdict(1, 2, "request 0"), Verdict(2, 2)):
        measured.judge(Engine.OURS, verdict)
    assert measured.verdicts == {Engine.OURS: Verdict(1, 2, "request 0")}


def test_every_other_round_goes_backwards() -> None:
    assert round_order(["a", "b", "c"], number=0) == ["a", "b", "c"]
    assert round_order(["a", "b", "c"], number=1) == ["c", "b", "a"]
