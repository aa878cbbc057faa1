"""Clients of a mesh: those that stay and compare what they get, and those that leave."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from edgeweave.interleave.nouns import KvCapacity
from exact.tally import Tally
from fakes.real_mesh import RealMesh
from models.tiny import Reference

TIE = 1e-5
TIGHT_KV = KvCapacity(block_tokens=4, num_blocks=9)
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class Leaver:
    """A client that leaves when its request is in `state`."""

    request_id: str
    prompt: Sequence[int]
    max_tokens: int
    state: str

    async def run(self, mesh: RealMesh) -> bool:
        """Ask and leave; return whether the state came before the end of the answer."""
        answering = asyncio.create_task(
            mesh.answer(self.prompt, max_tokens=self.max_tokens, request_id=self.request_id)
        )
        watching = asyncio.create_task(mesh.notice.until(lambda: mesh.driver.is_in(self.request_id, self.state)))
        try:
            await asyncio.wait([answering, watching], return_when=asyncio.FIRST_COMPLETED)
            return watching.done()
        finally:
            answering.cancel()
            watching.cancel()
            await asyncio.gather(answering, watching, return_exceptions=True)


def in_tight_order(some: Sequence[AnswerT]) -> list[AnswerT]:
    """Return what belongs to the five references in an order in which the second is preempted under `TIGHT_KV`.

    The prompt of 12 tokens comes first, and once more behind itself. Both are admitted and take all blocks but the
    one that the first grows into at its second token; what it needs at its sixth, the second has to give.
    """
    return [some[2], some[2], some[0], some[1], some[3], some[4]]


async def arrived(mesh: RealMesh, request: Coroutine[None, None, AnswerT]) -> asyncio.Task[AnswerT]:
    """Start a request; return it when the scheduler has it."""
    num_opened = mesh.driver.num_opened
    started = asyncio.create_task(request)
    await mesh.notice.until(lambda: mesh.driver.num_opened > num_opened)
    return started


async def answers(mesh: RealMesh, expected: Sequence[Reference]) -> list[list[int]]:
    """Return what the mesh answers to all prompts, asked side by side."""
    return await asyncio.gather(*(mesh.answer(r.prompt, max_tokens=len(r.output)) for r in expected))


def check_exact(output: Sequence[int], reference: Reference, tally: Tally) -> None:
    """Compare up to the first difference, which only a tie of the reference excuses."""
    assert len(output) == len(reference.output)
    tally.num_tokens += len(output)
    for index, (token_id, expected) in enumerate(zip(output, reference.output, strict=True)):
        if token_id != expected:
            assert reference.margins[index] < TIE, f"token {index}: {output} is not {reference.output}"
            tally.num_excused += 1
            return


async def check_empty(mesh: RealMesh) -> None:
    """Nothing of any request is left, in the accounts or in the engines."""
    await mesh.driver.idle()
    state = await mesh.state()
    assert (state.num_waiting, state.num_running, state.num_releasing, state.num_chunks) == (0, 0, 0, 0)
    for engine in (state.edge, state.cloud):
        assert engine is None or engine.num_free_blocks == engine.num_blocks
    assert [model.kv_blocks_used for model in mesh.models] == [0] * len(mesh.models)
    # What was on a lane when its sequences were freed still comes, and is thrown away.
    await mesh.state(lambda _: not left_behind(mesh))


def left_behind(mesh: RealMesh) -> list[object]:
    """Return what the sessions of the engines hold of any unit: frames, tensors, work."""
    servicers = [mesh.edge.servicer] if mesh.cloud is None else [mesh.edge.servicer, mesh.cloud.servicer]
    return [item for servicer in servicers for item in _held(servicer)]


def _held(servicer: Any) -> Iterator[object]:
    # Nobody but this test asks an engine for what it holds, so there is no way to do so in public.
    session = servicer._slot._session  # noqa: SLF001
    runner = session._runner  # noqa: SLF001
    yield from session._staging._open  # noqa: SLF001
    yield from (item for kept in vars(runner).values() if isinstance(kept, dict) for item in kept)
    if not runner.core.is_empty:
        yield runner.core
