"""Seeded samples and resumed outputs: what was drawn once is drawn again, whatever else the mesh does."""

import asyncio

import pytest

from edgeweave.interleave.nouns import Sampling
from edgeweave.rpc.channels import dial
from edgeweave.v1 import edge_pb2, scheduler_pb2
from edgeweave.v1.scheduler_pb2_grpc import SchedulerServiceStub
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from fakes.real_models import ONE_PLACE
from integration.mesh.clients import TIGHT_KV, arrived, in_tight_order
from models.tiny import references, tiny_model

NUM_TOKENS = 8
PROMPTS = in_tight_order([reference.prompt for reference in references("llama")])
SAMPLINGS = [
    Sampling(temperature=0.9, top_k=40, top_p=0.9, seed=seed)
    if seed % 2
    else Sampling(temperature=1.3, top_k=0, top_p=1.0, seed=seed)
    for seed in range(len(PROMPTS))
]
OTHERS = {
    "serial, token by token": MeshShape(tiny_model("llama"), scheduler={"plan": "serial", "chunk_tokens": 1}),
    "two steps, other cut": MeshShape(
        tiny_model("llama"), split="1:3", scheduler={"max_prefills": 3, "max_steps": 2, "chunk_tokens": 5}
    ),
    "preempted": MeshShape(tiny_model("llama"), cloud_kv=TIGHT_KV, scheduler={"plan": "1p1d", "chunk_tokens": 7}),
    "one place": MeshShape(tiny_model("llama"), split=ONE_PLACE, scheduler={"max_prefill_batch_size": 2}),
}


async def _draw(mesh: RealMesh, number: int) -> list[int]:
    return await mesh.answer(PROMPTS[number], max_tokens=NUM_TOKENS, sampling=SAMPLINGS[number])


async def _draw_all(mesh: RealMesh) -> list[list[int]]:
    """Draw side by side, all of them in the queue before the first unit ends."""
    mesh.edge.model.faults.hold()
    drawing = [await arrived(mesh, _draw(mesh, number)) for number in range(len(PROMPTS))]
    mesh.edge.model.faults.let_go()
    return await asyncio.gather(*drawing)


async def _alone() -> list[list[int]]:
    async with real_mesh(MeshShape(tiny_model("llama"))) as mesh:
        return [await _draw(mesh, number) for number in range(len(PROMPTS))]


@pytest.mark.parametrize("name", OTHERS)
async def test_a_seed_draws_the_same_tokens_under_every_mix(name: str) -> None:
    """Alone, in company, under another plan and cut, in one place, and when it was preempted."""
    alone = await _alone()
    assert len({tuple(output) for output in alone}) == len(alone)
    async with real_mesh(OTHERS[name]) as mesh:
        assert await _draw_all(mesh) == alone
        assert (mesh.driver.core.num_preemptions > 0) == (name == "preempted")


async def test_without_a_seed_two_answers_differ() -> None:
    """The scheduler draws a seed for a request that has none."""
    request = scheduler_pb2.GenerateRequest(
        prompt_token_ids=PROMPTS[0], max_tokens=12, sampling=edge_pb2.Sampling(temperature=1.5)
    )
    async with real_mesh(MeshShape(tiny_model("llama"))) as mesh, dial(mesh.target) as channel:
        generate = SchedulerServiceStub(channel).Generate
        outputs = [[t async for response in generate(request) for t in response.token_ids] for _ in range(2)]
    assert outputs[0] != outputs[1]


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLINGS[1]], ids=["greedy", "seeded"])
@pytest.mark.parametrize("split", ["1:1", ONE_PLACE])
async def test_an_output_is_resumed_where_it_broke_off(split: str, sampling: Sampling) -> None:
    """With what was generated before, the rest follows exactly, under absolute indices."""
    prompt = PROMPTS[1]
    async with real_mesh(MeshShape(tiny_model("llama"), split=split, scheduler={"chunk_tokens": 3})) as mesh:
        whole = await mesh.answer(prompt, max_tokens=NUM_TOKENS, sampling=sampling)
        for num_known in (1, 4, NUM_TOKENS - 1):
            deltas = [
                delta
                async for delta in mesh.client.generate(
                    prompt, max_tokens=NUM_TOKENS, sampling=sampling, output_token_ids=whole[:num_known]
                )
            ]
            rest = {delta.first_index + n: t for delta in deltas for n, t in enumerate(delta.token_ids)}
            assert rest == {index: whole[index] for index in range(num_known, NUM_TOKENS)}
            assert deltas[-1].usage is not None
            assert deltas[-1].usage.num_output_tokens == NUM_TOKENS
