"""One measured run: a load, played against a mesh that is up, under one plan.

Knows the order of things: plan, warm-up, rest, load, rest, check. Does not start meshes, and compares no runs.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial

from edgeweave.cli.mesh import Mesh
from edgeweave.cli.readiness import until_serving
from edgeweave.client import Client, TokenDelta
from edgeweave.client.mesh_state import UnitSum
from edgeweave.clock import Clock
from edgeweave.errors import UnavailableError
from edgeweave.settings import TlsSettings
from weaving.answers import Answer, wall_us
from weaving.checks import Check, Reference, check
from weaving.cpu import core_shares, cpu_seconds
from weaving.loads import BenchLoad, Prompt, warm_up_of
from weaving.places import Place
from weaving.player import Player
from weaving.use import MeshUse, state_at_rest, steps_so_far, use_between
from weaving.variants import Variant

DEADLINE_S = 600.0
"""A request that takes longer than this has been lost: no load lasts so long."""
SESSION_S = 30.0
"""Where the run before lost its session, the next one begins within this."""
MOST_SLOWDOWN = 1.05
"""Units of an undisturbed machine are not slower than this."""


@dataclass(frozen=True, slots=True)
class Key:
    """Which cell of which table a run belongs to, and which round of it."""

    engines: str
    load: str
    place: Place
    variant: str
    round: int = 0

    def __str__(self) -> str:
        """Name the run in a line."""
        return f"{self.engines}, load {self.load}, {self.place}, {self.variant}, round {self.round + 1}"


@dataclass(frozen=True, slots=True)
class Run:
    """What a run came to.

    `steps` are the decode steps of the engine that has the body, by rows, since its session began: warm-ups hold
    numbers of rows that the run does not. `cpu` is the share of one core that each process took. `slowdown` is how many
    times longer units took than on a machine that does nothing else.
    """

    key: Key
    answers: tuple[Answer, ...]
    use: MeshUse
    steps: dict[int, UnitSum]
    cpu: dict[str, float]
    check: Check
    slowdown: float = 1.0

    @property
    def body_cpu(self) -> float:
        """Share of a core that the process with the body took."""
        return self.cpu["cloud" if self.key.place.is_split else "edge"]


@dataclass(frozen=True, slots=True)
class Question:
    """A load with its prompts, and what the answers have to be."""

    load: BenchLoad
    prompts: Sequence[Prompt]
    references: Sequence[Reference]
    vocab_size: int


async def measure(
    mesh: Mesh, question: Question, variant: Variant, *, key: Key, clock: Clock, tls: TlsSettings | None = None
) -> Run:
    """Play a load under the plan of `variant` and return what came of it.

    A short warm-up of the same kind comes first and does not count: measured values follow a plan within a second.

    Raises:
        EdgeweaveError, ExceptionGroup: the mesh answered an error, or broke.
    """
    pids = {name: process.pid for name, process in mesh.processes.items()}
    await _wait_for_session(mesh, tls)
    async with Client(mesh.scheduler_address, tls=tls) as client:
        plan = variant.plan
        await client.set_plan(
            plan.kind,
            max_prefills=plan.max_prefills,
            max_steps=plan.max_steps,
            num_segments=plan.num_segments,
            fuse=plan.fuse,
        )
        player = Player(partial(_ask, client), clock)
        await _warm_up(player, question)
        before, cpu_before = await state_at_rest(client), cpu_seconds(pids)
        answers = await player.play(question.load.load, question.prompts)
        cpu_after = cpu_seconds(pids)
        after = await state_at_rest(client)
    return Run(
        key=key,
        answers=tuple(answers),
        use=use_between(before, after),
        steps=steps_so_far(after),
        cpu=core_shares(cpu_before, cpu_after, wall_s=wall_us(answers) / 1e6),
        check=check(answers, question.references),
    )


async def _wait_for_session(mesh: Mesh, tls: TlsSettings | None) -> None:
    try:
        async with asyncio.timeout(SESSION_S):
            await until_serving(mesh.scheduler_address, service="scheduler", tls=tls)
    except TimeoutError:
        raise UnavailableError(f"no session began within {SESSION_S:g} s") from None


def _ask(client: Client, prompt: Prompt, max_tokens: int) -> AsyncGenerator[TokenDelta, None]:
    return client.generate(prompt, max_tokens=max_tokens, deadline_s=DEADLINE_S)


async def _warm_up(player: Player, question: Question) -> None:
    warm_up = warm_up_of(question.load)
    await player.play(warm_up.load, warm_up.prompts(vocab_size=question.vocab_size))
