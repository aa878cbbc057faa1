"""What a caller may get wrong over gRPC, and what it hears: the right status and one line of text."""

import asyncio
import math
from collections.abc import AsyncIterator

import grpc
import pytest

from edgeweave.interleave.nouns import KvCapacity
from edgeweave.interleave.requests import Request
from edgeweave.rpc.channels import dial
from edgeweave.v1 import common_pb2, edge_pb2, scheduler_pb2
from edgeweave.v1.scheduler_pb2_grpc import SchedulerServiceStub
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from integration.mesh.clients import arrived, check_empty
from models.tiny import tiny_model

GENERATE = scheduler_pb2.GenerateRequest
SAMPLING = edge_pb2.Sampling
SET_PLAN = scheduler_pb2.SetPlanRequest
INVALID, OVERLOAD = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED
PROMPT = [5, 6, 7]
MAX_SEQ_LEN, MAX_WAITING = 40, 2
HINT = "(edge 256 x 4 tokens, cloud 8 x 4 tokens); shorten it, or give the engines more kv_bytes"
SMALL_KV = KvCapacity(block_tokens=4, num_blocks=8)


def _request(**fields: object) -> GENERATE:
    return GENERATE(**({"prompt_token_ids": PROMPT, "max_tokens": 4} | fields))  # type: ignore[arg-type]  # by name


def _sampled(**fields: float) -> GENERATE:
    return _request(sampling=SAMPLING(**fields))  # type: ignore[arg-type]  # by name


BAD_REQUESTS = {
    "empty prompt": (_request(prompt_token_ids=[]), "prompt_token_ids is empty; a prompt has at least one token"),
    "no token asked for": (_request(max_tokens=0), "max_tokens is 0; at least 1 token must be asked for"),
    "prompt over the limit": (
        _request(prompt_token_ids=[5] * 39),
        "a prompt of 39 tokens with max_tokens 4 makes 43, and max_seq_len is 40; shorten one of them",
    ),
    "more KV than there is": (
        _request(prompt_token_ids=[5] * 30),
        f"a prompt of 30 tokens with max_tokens 4 needs more KV than one side has in all {HINT}",
    ),
    "nothing left to resume": (
        _request(output_token_ids=[1, 2, 3, 4]),
        "output_token_ids has 4 tokens and max_tokens is 4; nothing is left to generate",
    ),
    "negative temperature": (_sampled(temperature=-1.0), "temperature -1.0 is not legal; give 0 (greedy) or more"),
    "temperature that is no number": (
        _sampled(temperature=math.nan),
        "temperature nan is not legal; give 0 (greedy) or more",
    ),
    "endless temperature": (_sampled(temperature=math.inf), "temperature inf is not legal; give 0 (greedy) or more"),
    "top_p over 1": (_sampled(top_p=1.5), "top_p 1.5 is not legal; give more than 0 and at most 1"),
    "negative top_p": (_sampled(top_p=-0.5), "top_p -0.5 is not legal; give more than 0 and at most 1"),
    "endless name": (_request(request_id="x" * 257), "request_id is longer than 256 characters"),
    "token beyond the vocabulary": (
        _request(prompt_token_ids=[5, 192]),
        "token id 192 is not one of the model, which has 192; use the tokenizer of the model",
    ),
}
BAD_PLANS = {
    "unknown kind": (SET_PLAN(), "SetPlanRequest.kind holds 0"),
    "kind of a newer version": (SET_PLAN(kind=77), "SetPlanRequest.kind holds 77"),  # type: ignore[arg-type]  # is wrong
    "too many chunks": (
        SET_PLAN(kind=common_pb2.PLAN_KIND_TWO_P_ONE_D, max_prefills=17),
        "max_prefills 17 and max_steps 1 must be between 1 and 16",
    ),
    "serial with two": (
        SET_PLAN(kind=common_pb2.PLAN_KIND_SERIAL, max_prefills=2),
        "plan serial keeps one unit away: max_prefills and max_steps must be 1",
    ),
}


@pytest.fixture
async def mesh() -> AsyncIterator[RealMesh]:
    scheduler = {"plan": "1p1d", "max_seq_len": MAX_SEQ_LEN, "max_waiting": MAX_WAITING}
    async with real_mesh(MeshShape(tiny_model("llama"), cloud_kv=SMALL_KV, scheduler=scheduler)) as served:
        yield served


async def _refusal(mesh: RealMesh, request: GENERATE) -> tuple[grpc.StatusCode, str]:
    async with dial(mesh.target) as channel:
        try:
            async for _ in SchedulerServiceStub(channel).Generate(request):
                pass
        except grpc.aio.AioRpcError as failure:
            return failure.code(), failure.details() or ""
    raise AssertionError("the request was served")


async def test_a_bad_request_is_refused_with_what_is_wrong(mesh: RealMesh) -> None:
    """INVALID_ARGUMENT and one line that names the field, the value and the limit; nothing was started."""
    told = {name: await _refusal(mesh, request) for name, (request, _) in BAD_REQUESTS.items()}
    assert told == {name: (INVALID, text) for name, (_, text) in BAD_REQUESTS.items()}
    await check_empty(mesh)


async def test_a_bad_plan_is_refused_and_the_old_one_stays(mesh: RealMesh) -> None:
    """INVALID_ARGUMENT and one line; the plan in force does not change."""
    before = mesh.driver.core.plan
    async with dial(mesh.target) as channel:
        for request, text in BAD_PLANS.values():
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await SchedulerServiceStub(channel).SetPlan(request)
            assert raised.value.code() is INVALID
            assert text in (raised.value.details() or "")
            assert "\n" not in (raised.value.details() or "")
    assert mesh.driver.core.plan == before


async def test_a_name_that_is_in_use_is_refused(mesh: RealMesh) -> None:
    """The request that has the name goes on; the name is free again when it has ended."""
    mesh.edge.model.faults.hold()
    first = await arrived(mesh, mesh.answer(PROMPT, max_tokens=4, request_id="twin"))
    assert await _refusal(mesh, _request(request_id="twin")) == (
        INVALID,
        "request id 'twin' is in use; choose another",
    )
    mesh.edge.model.faults.let_go()
    assert await first == await mesh.answer(PROMPT, max_tokens=4, request_id="twin")


async def test_a_client_that_ends_late_takes_nothing_from_the_next_one_of_its_name(mesh: RealMesh) -> None:
    """An id is free once its request has finished, though the stream that carried it may still be closing."""

    def request() -> Request:
        return Request("twin", tuple(PROMPT), max_tokens=2)

    first = mesh.driver.open(request())
    await mesh.notice.until(lambda: "twin" not in mesh.driver.core.requests)
    second = mesh.driver.open(request())
    mesh.driver.close("twin", first)
    async with asyncio.timeout(10):
        assert [await first.get() for _ in range(2)] == [await second.get() for _ in range(2)]


async def test_a_full_queue_is_told_as_overload(mesh: RealMesh) -> None:
    """RESOURCE_EXHAUSTED; those that wait are served."""
    mesh.edge.model.faults.hold()
    answering = [await arrived(mesh, mesh.answer(PROMPT, max_tokens=4)) for _ in range(1 + MAX_WAITING)]
    assert await _refusal(mesh, _request()) == (
        OVERLOAD,
        "2 requests wait already (max_waiting); try again later",
    )
    mesh.edge.model.faults.let_go()
    first, *others = await asyncio.gather(*answering)
    assert all(other == first for other in others)
    await check_empty(mesh)
