"""A mesh says what the whole model says: every plan, chunk size, abort, preemption, cut and size of pieces."""

import asyncio
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest
from allpairspy import AllPairs

from edgeweave.interleave.nouns import KvCapacity
from exact.tally import Tally
from fakes.real_mesh import AMPLE_KV, MeshShape, RealMesh, real_mesh
from fakes.real_models import ONE_PLACE
from fakes.watched import STATES
from integration.mesh.clients import TIGHT_KV, Leaver, arrived, check_empty, check_exact, in_tight_order
from models.tiny import Reference, references, tiny_model

NOBODY = "nobody"
AMPLE, TIGHT_EDGE, TIGHT_BODY = "ample", "tight edge", "tight body"

ARCHITECTURES = ["llama", "gemma2", "deepseek_v3"]
PLANS: dict[str, dict[str, object]] = {
    "serial": {"plan": "serial"},
    "1p1d": {"plan": "1p1d"},
    "2p1d": {"plan": "2p1d", "num_segments": 3},
    "3p2d": {"plan": "2p1d", "max_prefills": 3, "max_steps": 2},
    "adaptive": {"plan": "adaptive"},
    "fused": {"plan": "2p1d", "max_prefills": 3, "num_segments": 2, "fuse": "always"},
    "adaptive, fused": {"plan": "adaptive", "fuse": "always"},
}
CHUNKS = [1, 3, 16, 512]
LEAVES = [NOBODY, *STATES]
THIN_KV = KvCapacity(block_tokens=3, num_blocks=400)
MEMORIES = {
    AMPLE: (AMPLE_KV, KvCapacity(block_tokens=5, num_blocks=200)),
    TIGHT_EDGE: (TIGHT_KV, THIN_KV),
    TIGHT_BODY: (THIN_KV, TIGHT_KV),
}
SPLITS = ["1:1", "3:1", "1:3", ONE_PLACE]
PIECES = [1, 5, 128]
FRAMES = [128, 384, 4096]


class Case(NamedTuple):
    """One mesh and what happens in it. `leaves` is the state in which some clients leave.

    The body is in the cloud, or where everything is.
    """

    architecture: str
    plan: str
    chunk_tokens: int
    leaves: str
    memory: str
    split: str
    piece_tokens: int
    frame_bytes: int

    @property
    def shape(self) -> MeshShape:
        edge_kv, body_kv = MEMORIES[self.memory]
        if self.split == ONE_PLACE and self.memory == TIGHT_BODY:
            edge_kv = body_kv
        return MeshShape(
            tiny_model(self.architecture),
            split=self.split,
            edge_kv=edge_kv,
            cloud_kv=body_kv,
            piece_tokens=self.piece_tokens,
            frame_bytes=self.frame_bytes,
            scheduler=PLANS[self.plan] | {"chunk_tokens": self.chunk_tokens},
        )


VALUES: list[list[Any]] = [ARCHITECTURES, list(PLANS), CHUNKS, LEAVES, list(MEMORIES), SPLITS, PIECES, FRAMES]
NUM_CROSSED = 5


PAIRS = sorted(Case(*values) for values in AllPairs(VALUES))


def _product() -> Iterator[Case]:
    """Cross architectures, plans, chunks, aborts and memories; the cuts and sizes take turns beside them."""
    sizes = list(product(*VALUES[NUM_CROSSED:]))
    for number, values in enumerate(product(*VALUES[:NUM_CROSSED])):
        yield Case(*values, *sizes[number % len(sizes)])


async def _check(case: Case, tally: Tally) -> None:
    expected = in_tight_order(references(case.architecture))
    leavers = [
        Leaver(f"leaver {n}", expected[n].prompt, max_tokens=9, state=case.leaves)
        for n in range(0 if case.leaves == NOBODY else 3)
    ]
    async with real_mesh(case.shape) as mesh:
        outputs = await _answers_beside(mesh, expected, leavers)
        for output, reference in zip(outputs, expected, strict=True):
            check_exact(output, reference, tally)
        await check_empty(mesh)
        assert (await mesh.state()).num_departures == 0
        if case.memory != AMPLE:
            assert mesh.driver.core.num_preemptions > 0


async def _answers_beside(mesh: RealMesh, expected: list[Reference], leavers: list[Leaver]) -> list[list[int]]:
    """Return the answers to those who stay; all are there before the first unit ends, those who leave behind them."""
    mesh.edge.model.faults.hold()
    staying = [await arrived(mesh, mesh.answer(r.prompt, max_tokens=len(r.output))) for r in expected]
    leaving = [await arrived(mesh, leaver.run(mesh)) for leaver in leavers]
    mesh.edge.model.faults.let_go()
    await asyncio.gather(*leaving)
    return await asyncio.gather(*staying)


def _name(case: Case) -> str:
    return "-".join(str(value).replace(", ", "_").replace(" ", "_") for value in case)


@pytest.mark.parametrize("case", PAIRS, ids=_name)
async def test_a_mesh_says_what_the_whole_model_says(case: Case, tally: Tally) -> None:
    """Greedy tokens equal those of `transformers.generate`; each pair of values of all dimensions is here."""
    await _check(case, tally)


@pytest.mark.exact
@pytest.mark.parametrize("case", list(_product()), ids=_name)
async def test_every_combination(case: Case, tally: Tally) -> None:
    """The same for the whole product."""
    await _check(case, tally)


def test_the_selection_holds_every_pair() -> None:
    """The thinned cases hold each pair of values of each two dimensions."""
    for one, other in combinations(range(len(VALUES)), 2):
        assert {(case[one], case[other]) for case in PAIRS} == set(product(VALUES[one], VALUES[other]))


def test_ties_are_rare(tally: Tally) -> None:
    """At most 1 token in 10,000 leaves the reference at a tie, over all cases that ran before."""
    assert tally.num_excused * 10_000 <= max(tally.num_tokens, 10_000)
