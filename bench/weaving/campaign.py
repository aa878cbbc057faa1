"""The order of runs: which variant is measured when, where, and beside what.

Engines that compute have noise, so their runs come in rounds: one place and each variant once, every other round in
reverse, and ratios are taken within a round. Emulated engines have none but that of the machine: one round is enough
on a quiet one, and far meshes of several loads are at work at a time.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from edgeweave.clock import Clock
from edgeweave.errors import EdgeweaveError
from edgeweave.settings import TlsSettings
from weaving.answers import tokens_per_s, wall_us
from weaving.cells import best_apart_of, best_of
from weaving.engines import Engines
from weaving.loads import BenchLoad
from weaving.meshes import Meshes, on_site_core
from weaving.places import ONE_PLACE, Place
from weaving.run import MOST_SLOWDOWN, Key, Question, Run, measure
from weaving.shares import Machine, shares_of
from weaving.variants import CENTRALIZED, Variant

OPEN_LOAD_SHARE = 0.8
"""An open load comes at this share of what one place can serve."""


@dataclass(slots=True)
class Measured:
    """All runs of one load. `trials` have each variant of one place once, with all requests at once."""

    load: BenchLoad
    trials: list[Run] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether there is a split to compare, and one place to compare it with."""
        return bool(self.trials) and {run.key.place.is_split for run in self.runs} == {True, False}


@dataclass(slots=True)
class Campaign:
    """Runs of one kind of engines, on `machine`, which all of them share.

    `tell` hears a line for each run; `failures` gets one for each that was not good.
    """

    engines: Engines
    clock: Clock
    tell: Callable[[str], None]
    machine: Machine
    tls: TlsSettings | None = None
    failures: list[str] = field(default_factory=list)

    async def question(self, load: BenchLoad) -> Question:
        """Return a load with its prompts and references; it may take minutes, in which nothing should be measured."""
        prompts = load.prompts(vocab_size=self.engines.vocab_size)
        references = await self.engines.references(prompts, load.num_output_tokens)
        return Question(load, prompts, references, self.engines.vocab_size)

    async def measure(
        self, question: Question, places: Sequence[Place], variants: Sequence[Variant], *, num_rounds: int
    ) -> Measured:
        """Measure one load everywhere."""
        load = question.load
        async with Meshes(self.engines, load) as one_place:
            async with self.at(ONE_PLACE):
                trials = [await self._run(one_place, ONE_PLACE, question, variant, 0) for variant in CENTRALIZED]
            measured = Measured(load, [run for run in trials if run is not None])
            if not measured.trials:
                return measured
            question = self._arriving(question, measured.trials)
            measured.load = question.load
            names = {best_of(measured.trials), best_apart_of(measured.trials)}
            best = [variant for variant in CENTRALIZED if variant.name in names]
            rounds = _Rounds(self, question, measured, one_place, best, variants)
            if self.engines.is_pinned or num_rounds > 1:
                await rounds.alternate(places, num_rounds=num_rounds)
            else:
                await rounds.once(places)
        return measured

    def at(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Hold what runs at `place` take of the machine."""
        return self.machine.share(shares_of(place, is_pinned=self.engines.is_pinned))

    def _arriving(self, question: Question, trials: Sequence[Run]) -> Question:
        """Return an open load as it comes at its share of the capacity that the trials showed."""
        if not question.load.is_open:
            return question
        least_s = min(wall_us(run.answers) for run in trials) / 1e6
        rate_per_s = OPEN_LOAD_SHARE * len(question.prompts) / least_s
        load = question.load.arriving(rate_per_s=rate_per_s)
        return Question(load, question.prompts, question.references, question.vocab_size)

    async def _run(self, meshes: Meshes, place: Place, question: Question, variant: Variant, number: int) -> Run | None:
        """Measure once; `None` where that failed."""
        key = Key(self.engines.name, question.load.name, place, variant.name, number)
        try:
            mesh = await meshes.mesh_for(variant, place)
            with on_site_core(is_pinned=self.engines.is_pinned):
                tls = self.tls if place.has_tls else None
                run = await measure(mesh, question, variant, key=key, clock=self.clock, tls=tls)
        except (EdgeweaveError, ExceptionGroup) as error:
            self._fail(f"{key}: {_first_line(error)}")
            return None
        run = replace(run, slowdown=self.engines.slowdown(run))
        self.tell(_line_of(run))
        if not run.check.is_good:
            self._fail(f"{key}: {'; '.join(run.check.differences[:3]) or f'{run.check.num_ties} ties'}")
        if not self.engines.is_pinned and run.slowdown > MOST_SLOWDOWN:
            self._fail(f"{key}: steps took {run.slowdown:.2f} times what the profile says; other programs were at work")
        return run

    def _fail(self, line: str) -> None:
        self.failures.append(line)
        self.tell(f"FAILED {line}")


@dataclass(frozen=True, slots=True)
class _Rounds:
    """The comparison of one load: the `best` plans of one place against `variants` of the split."""

    campaign: Campaign
    question: Question
    measured: Measured
    one_place: Meshes
    best: Sequence[Variant]
    variants: Sequence[Variant]

    async def alternate(self, places: Sequence[Place], *, num_rounds: int) -> None:
        """Measure place after place in rounds; every round has runs in one place of its own."""
        for index, place in enumerate(places):
            async with self.campaign.at(place), self._meshes() as split:
                for number in range(index * num_rounds, (index + 1) * num_rounds):
                    for variant in round_order([*self.best, *self.variants], number=number):
                        await self._run(split, place, variant, number)

    async def once(self, places: Sequence[Place]) -> None:
        """Measure everything once, several places at a time; a trial of one place is as good as another run."""
        if self.question.load.is_open:
            async with self.campaign.at(ONE_PLACE):
                for variant in self.best:
                    await self._run(self.one_place, ONE_PLACE, variant, 0)
        else:
            names = {variant.name for variant in self.best}
            self.measured.runs += [run for run in self.measured.trials if run.key.variant in names]
        async with asyncio.TaskGroup() as group:
            for place in places:
                group.create_task(self._once_at(place))

    async def _once_at(self, place: Place) -> None:
        async with self.campaign.at(place), self._meshes() as split:
            for variant in self.variants:
                await self._run(split, place, variant, 0)

    def _meshes(self) -> Meshes:
        return Meshes(self.campaign.engines, self.question.load, self.campaign.tls)

    async def _run(self, split: Meshes, place: Place, variant: Variant, number: int) -> None:
        meshes, where = (self.one_place, ONE_PLACE) if variant.is_centralized else (split, place)
        run = await self.campaign._run(meshes, where, self.question, variant, number)  # noqa: SLF001 - one thing in two parts
        if run is not None:
            self.measured.runs.append(run)


def round_order(variants: Sequence[Variant], *, number: int) -> list[Variant]:
    """Return the order of a round: every other one goes backwards, so that none is always the first."""
    return list(reversed(variants)) if number % 2 else list(variants)


def _line_of(run: Run) -> str:
    seconds, busy = wall_us(run.answers) / 1e6, run.use.body.busy_share
    slowed = f", slowed {run.slowdown:.2f} times by other programs" if run.slowdown > MOST_SLOWDOWN else ""
    return f"{run.key}: {tokens_per_s(run.answers):,.0f} tokens/s, {seconds:.1f} s, busy {busy:.0%}{slowed}"


def _first_line(error: BaseException) -> str:
    """Return the first line of the first error within."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error).splitlines() or [type(error).__name__])[0]
