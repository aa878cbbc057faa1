"""Three hundred requests, many of whose clients leave: everything comes back."""

import asyncio
import random
from collections import Counter

from edgeweave.interleave.nouns import KvCapacity
from exact.tally import Tally
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from fakes.watched import STATES
from integration.mesh.clients import Leaver, check_empty, check_exact
from models.tiny import Reference, references, tiny_model

NUM_REQUESTS = 300
NUM_SIDE_BY_SIDE = 24
FEWEST_ABORTS = 10
EXPECTED = references("llama")
SEED = 11
SHORT_KV = KvCapacity(block_tokens=4, num_blocks=24)
THIN_KV = KvCapacity(block_tokens=3, num_blocks=200)


class Crowd:
    """Clients that ask, one after the other; what they do is drawn by lot, in a fixed order."""

    def __init__(self, mesh: RealMesh, tally: Tally) -> None:
        self.left: Counter[str] = Counter()
        self._mesh = mesh
        self._tally = tally
        self._lot = random.Random(SEED)  # noqa: S311 - a test repeats itself
        self._numbers = iter(range(NUM_REQUESTS))

    async def ask(self) -> None:
        """Be one client after the other until all requests are made."""
        for number in self._numbers:
            reference, state = self._lot.choice(EXPECTED), self._lot.choice((*STATES, None))
            if state is None:
                await self._stay(reference)
            else:
                await self._leave(f"leaver {number}", reference, state)

    async def _stay(self, reference: Reference) -> None:
        output = await self._mesh.answer(reference.prompt, max_tokens=len(reference.output))
        check_exact(output, reference, self._tally)

    async def _leave(self, request_id: str, reference: Reference, state: str) -> None:
        if await Leaver(request_id, reference.prompt, len(reference.output), state).run(self._mesh):
            self.left[state] += 1


async def test_three_hundred_requests_with_aborts_in_every_state_leave_nothing(tally: Tally) -> None:
    """At least ten clients leave in each state; the others are answered exactly, and all is free again.

    A client leaves in `releasing` when its sequence was preempted, or has just finished and is not free yet.
    """
    scheduler = {"max_prefills": 2, "chunk_tokens": 6}
    shape = MeshShape(tiny_model("llama"), edge_kv=SHORT_KV, cloud_kv=THIN_KV, scheduler=scheduler)
    async with real_mesh(shape) as mesh:
        crowd = Crowd(mesh, tally)
        async with asyncio.TaskGroup() as clients:
            for _ in range(NUM_SIDE_BY_SIDE):
                clients.create_task(crowd.ask())
        await check_empty(mesh)
        assert mesh.driver.num_opened == NUM_REQUESTS
        told = f"clients left in {dict(crowd.left)}, aborts heard in {dict(mesh.driver.aborts)}"
        print(told)  # noqa: T201 - the counts are part of what is proved
        assert all(crowd.left[state] >= FEWEST_ABORTS for state in STATES)
