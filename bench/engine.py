"""Measures our engine in one place beside others: the same prompts, the same model, one core, one thread, in turns.

    bench/engine.py --out docs/results                    both models, all engines but vLLM
    bench/engine.py --vllm-python PATH                    vLLM as well, from an environment of its own
    bench/engine.py --models llama51m --batches 8 --engines ours generate --profile
    bench/engine.py --quick                               does everything work?

Each engine is a process that stays; one computes at a time, the others sleep in a read. Exit code 1: tokens of ours
were not those of the reference; the last lines say which.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from contest.cases import Case, cases_of, prompts_of, room_for
from contest.command import PROFILED_BATCH, Wanted, parse
from contest.engines import Command, Engine, Start, command_of, memory_command, profile_command
from contest.figures import model_figures
from contest.models import Model, model_named
from contest.page import Origin, page_of
from contest.process import EngineProcess
from contest.results import ModelResults
from contest.rounds import Contest, Question
from weaving.machine import machine_line
from weaving.outcome import exit_code


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    wanted = parse(argv)
    machine = machine_line()
    os.sched_setaffinity(0, {wanted.core})  # for all that is started from here
    return exit_code(bench(wanted, machine=machine))


async def bench(wanted: Wanted, *, machine: str) -> list[str]:
    """Measure all that is wanted, and write it down; return what failed."""
    failures: list[str] = []
    results = [await _ModelBench(wanted, name, failures).measure() for name in wanted.models]
    origin = Origin(wanted.shown, machine, wanted.core, wanted.num_rounds)
    page = page_of(results, wanted.engines, origin)
    print(f"\n{page}", flush=True)
    if wanted.out is not None:
        wanted.out.mkdir(parents=True, exist_ok=True)
        (wanted.out / "engine.md").write_text(page, encoding="utf-8")
    if wanted.json_file is not None:
        figures = [model_figures(each, wanted.engines) for each in results]
        content = {"command": wanted.shown, "machine": machine, "core": wanted.core, "failures": failures}
        wanted.json_file.parent.mkdir(parents=True, exist_ok=True)
        wanted.json_file.write_text(json.dumps({**content, "models": figures}, indent=1), encoding="utf-8")
    return failures


@dataclass(frozen=True, slots=True)
class _ModelBench:
    """The contest on one model."""

    wanted: Wanted
    name: str
    failures: list[str]

    async def measure(self) -> ModelResults:
        """Measure all cases, in rounds."""
        model = await model_named(self.name, cache=self.wanted.cache)
        cases = cases_of(self.wanted.batches_of(self.name), self.wanted.lengths)
        start = Start(model, room_for(cases), self.wanted.core, self.wanted.piece_tokens, self.wanted.vllm_python)
        questions = [await self._question(case, model) for case in cases]
        async with AsyncExitStack() as stack:
            engines = {
                name: await stack.enter_async_context(self._started(name, command))
                for name in self.wanted.engines
                if (command := command_of(name, start)) is not None
            }
            memory = await stack.enter_async_context(self._started("memory", memory_command()))
            contest = Contest(self.name, engines, memory, _tell, self.failures)
            measured = [await contest.measure(each, num_rounds=self.wanted.num_rounds) for each in questions]
            settings = {name: engine.settings for name, engine in engines.items()}
        profiles = await self._profiles(start) if self.wanted.with_profile else {}
        return ModelResults(model, settings, measured, profiles)

    def _started(self, name: str, command: Command) -> Any:
        _tell(f"{self.name}: starting {name}")
        return EngineProcess.start(name, command)

    async def _question(self, case: Case, model: Model) -> Question:
        prompts = prompts_of(case, vocab_size=model.vocab_size)
        references = await model.references.references(prompts, [1 + case.decoded_tokens] * case.batch)
        return Question(case, prompts, references)

    async def _profiles(self, start: Start) -> dict[Engine, Mapping[str, Any]]:
        """Take a step of each engine of ours apart, alone on the core."""
        lengths = self.wanted.lengths
        case = Case(PROFILED_BATCH, lengths.prompt_tokens, lengths.decoded_tokens)
        prompts = prompts_of(case, vocab_size=start.model.vocab_size)
        profiles: dict[Engine, Mapping[str, Any]] = {}
        for name in self.wanted.engines:
            command = profile_command(name, start)
            if command is not None:
                async with self._started(f"profile of {name}", command) as process:
                    profiles[name] = {"batch": case.batch, **await process.ask({"prompts": prompts})}
        return profiles


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
