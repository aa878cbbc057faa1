"""Who may serve whom: two sides that fit, one site, the highest session number, staging for what will be away."""

from contextlib import AsyncExitStack
from typing import Any

import grpc
import pytest

from edgeweave.clock import MonotonicClock
from edgeweave.errors import EdgeweaveError, SessionLostError, StaleSessionError, UnavailableError
from edgeweave.interleave.nouns import Attached, DType
from edgeweave.interleave.protocol import PROTOCOL
from edgeweave.rpc.channels import dial
from edgeweave.rpc.dialed_lane import LaneOptions
from edgeweave.rpc.lanes import open_lanes
from edgeweave.rpc.status import error_of
from edgeweave.v1.cloud_pb2_grpc import CloudServiceStub
from edgeweave.v1.edge_pb2_grpc import EdgeServiceStub
from edgeweave.wire.messages import (
    AttachCloud,
    AttachEdge,
    cloud_report_of,
    cloud_task_message,
    edge_task_message,
)
from edgeweave_scheduler.keeper import SessionState
from edgeweave_scheduler.site import site_token
from exact.tally import Tally
from fakes.real_engines import ServedCloud
from fakes.real_mesh import MeshShape, RealMesh, real_mesh, serve_scheduler
from fakes.watched import Notice
from integration.mesh.clients import answers, check_empty, check_exact
from models.tiny import references, tiny_model

EXPECTED = references("llama")
SHAPE = MeshShape(tiny_model("llama"))
SITE = site_token("site")


def _cloud(mesh: RealMesh) -> ServedCloud:
    assert mesh.cloud is not None
    return mesh.cloud


async def _check_serves(mesh: RealMesh, tally: Tally) -> None:
    for output, reference in zip(await answers(mesh, EXPECTED), EXPECTED, strict=True):
        check_exact(output, reference, tally)
    await check_empty(mesh)


async def _end(call: Any) -> EdgeweaveError:
    """Return why an engine ends a task stream."""
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as failure:
        return error_of(failure)
    raise AssertionError("the engine ended the stream without an error")


# ---- two sides that fit

LIES = {
    "model": (b"\1" * 32, "01010101"),
    "weights": (b"\2" * 32, "02020202"),
    "head_layers": (2, "cloud has 2"),
    "tail_layers": (3, "cloud has 3"),
    "dtype": (DType.BFLOAT16, "edge has float32, cloud has bfloat16"),
    "protocol": (99, f"edge has {PROTOCOL}, cloud has 99"),
}


@pytest.mark.parametrize("name", LIES)
async def test_two_sides_that_differ_do_not_serve_until_they_are_repaired(name: str, tally: Tally) -> None:
    """Operators and clients read both values; the next try comes after the long back-off, and serves once it fits."""
    value, shown = LIES[name]
    async with real_mesh(SHAPE, waits=False) as mesh:
        faults = _cloud(mesh).model.faults
        faults.lies[name] = value
        state = await mesh.state(lambda state: state.reason is not None and name in state.reason)
        assert f"edge and cloud differ in {name}: edge has " in (state.reason or "")
        assert shown in (state.reason or "")
        with pytest.raises(UnavailableError, match=f"differ in {name}: edge has .*, cloud has .*; "):
            await mesh.answer(EXPECTED[0].prompt, max_tokens=1)
        faults.lies.clear()
        await mesh.ready()
        await _check_serves(mesh, tally)


async def test_engines_of_two_splits_do_not_serve() -> None:
    """The same with two engines that were really loaded so."""
    async with real_mesh(MeshShape(tiny_model("llama"), split="1:1", cloud_split="1:3"), waits=False) as mesh:
        state = await mesh.state(lambda state: "differ" in (state.reason or ""))
        assert state.reason == (
            "edge and cloud differ in tail_layers: edge has 1, cloud has 3; set the same split on both sides"
        )


async def test_the_next_try_after_a_mismatch_waits_long() -> None:
    """Trying again at once cannot help; session numbers count the tries."""
    shape = MeshShape(tiny_model("llama"), split="1:1", cloud_split="1:3", scheduler={"max_connect_backoff_s": 60})
    async with real_mesh(shape, waits=False) as mesh:
        await mesh.notice.until(
            lambda: mesh.keeper.state is SessionState.DOWN and "differ" in (mesh.keeper.reason or "")
        )
        first = mesh.keeper.number
        seen = [await mesh.state() for _ in range(10)]
        assert {state.session for state in seen} == {first}


async def test_a_chunk_that_staging_cannot_hold_is_refused_at_connect() -> None:
    """Both numbers are named, and what to change."""
    async with real_mesh(MeshShape(tiny_model("llama"), staging_bytes=1 << 20), waits=False) as mesh:
        state = await mesh.state(lambda state: "stages" in (state.reason or ""))
        assert state.reason == (
            "the edge engine stages 1048576 bytes and 3 chunks of 8192 tokens need 3145728; "
            "raise its staging_bytes or lower max_prefill_tokens"
        )


# ---- session numbers


async def test_a_lower_session_is_refused_by_both_engines(tally: Tally) -> None:
    """FAILED_PRECONDITION, with both numbers; the session that serves does not notice."""
    async with real_mesh(SHAPE) as mesh, dial(_cloud(mesh).target) as to_cloud, dial(mesh.edge.target) as to_edge:
        served, lower = mesh.keeper.number, mesh.keeper.number - 1
        told = f"session {lower} comes after session {served}"
        cloud_call, edge_call = CloudServiceStub(to_cloud).RunCloudTasks(), EdgeServiceStub(to_edge).RunEdgeTasks()
        await cloud_call.write(cloud_task_message(AttachCloud(lower, site=SITE)))
        await edge_call.write(
            edge_task_message(AttachEdge(lower, cloud_target=_cloud(mesh).target, max_chunk_tokens=1))
        )
        for error in (await _end(cloud_call), await _end(edge_call)):
            assert isinstance(error, StaleSessionError)
            assert told in str(error)
        assert await cloud_call.code() is await edge_call.code() is grpc.StatusCode.FAILED_PRECONDITION
        await _check_serves(mesh, tally)
        assert mesh.keeper.number == served


async def test_a_site_that_comes_back_evicts_its_older_session(tally: Tally) -> None:
    """KV is not kept for a connection without another end: the older session ends, its scheduler comes back higher."""
    async with real_mesh(SHAPE) as mesh, dial(_cloud(mesh).target) as channel:
        before = mesh.keeper.number
        call = CloudServiceStub(channel).RunCloudTasks()
        await call.write(cloud_task_message(AttachCloud(before + 1, site=SITE)))
        answer: Any = await call.read()
        assert isinstance(cloud_report_of(answer), Attached)
        await mesh.notice.until(lambda: mesh.keeper.number > before)
        await mesh.ready(after=before + 1)
        error = await _end(call)
        assert isinstance(error, SessionLostError)
        assert f"session {before + 1} was followed by session" in str(error)
        await _check_serves(mesh, tally)


@pytest.mark.parametrize("offset", [-1, 1])
async def test_a_lane_of_a_session_that_is_not_served_is_refused(offset: int, tally: Tally) -> None:
    """Both numbers are named; the session that serves goes on."""
    async with real_mesh(SHAPE) as mesh:
        served = mesh.keeper.number
        options = LaneOptions(row_bytes=128, dtype=DType.FLOAT32, max_chunk_tokens=4)
        with pytest.raises(StaleSessionError, match=f"session {served + offset} is not served here.* {served}$"):
            async with open_lanes(
                _cloud(mesh).target,
                session=served + offset,
                options=options,
                on_frame=lambda _lane, _frame: None,
                clock=MonotonicClock(),
            ):
                pass
        await _check_serves(mesh, tally)
        assert mesh.keeper.number == served


# ---- one site


async def test_a_second_site_is_refused(tally: Tally) -> None:
    """A cloud engine serves one site at a time, and says so to the other one's operator."""
    async with AsyncExitStack() as stack:
        mesh = await stack.enter_async_context(real_mesh(SHAPE))
        settings = mesh.settings.model_copy(update={"site": "another", "cloud": _cloud(mesh).target})
        notice = Notice()
        _, other, _ = await serve_scheduler(stack, settings, notice=notice)
        await notice.until(lambda: other.state is SessionState.DOWN and other.number > 0)
        assert "serves another site now; give each site a cloud engine of its own" in (other.reason or "")
        await _check_serves(mesh, tally)
