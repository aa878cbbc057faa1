"""A lane that is not opened as the contract says is refused, and an edge does not wait for ever for its answer."""

from typing import Any

import grpc
import pytest

from edgeweave.errors import EdgeweaveError, ProtocolError, SessionLostError, UnavailableError
from edgeweave.interleave.nouns import DType, Lane
from edgeweave.rpc.channels import dial_lane
from edgeweave.rpc.cloud_service import CARRY_FRAMES, CLOUD_SERVICE, CarryFrames, cloud_service_handler
from edgeweave.rpc.server import GrpcServer
from edgeweave.rpc.status import error_of
from edgeweave.wire.frame_codec import decode_up, encode_down, encode_up
from edgeweave.wire.frames import WARM_UP, Frame, LaneOpen
from fakes.lane_ends import Cloud, lane_edge


async def _refusal(cloud: Cloud, first: bytes | None) -> EdgeweaveError:
    """Return what the cloud answers to a stream that begins with `first`, or ends at once."""
    async with dial_lane(cloud.target) as channel:
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(CARRY_FRAMES)()
        if first is None:
            await call.done_writing()
        else:
            await call.write(first)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call.read()
        return error_of(refused.value)


FIRSTS = {
    "garbage": b"\xff\xff\xff",
    "nothing": None,
    "a frame": encode_up(Frame(1, 0, 1, 1, DType.FLOAT32, payload=b"abcd")),
}


@pytest.mark.parametrize("first", FIRSTS)
async def test_a_stream_that_does_not_open_a_lane_is_refused(cloud: Cloud, first: str) -> None:
    assert isinstance(await _refusal(cloud, FIRSTS[first]), ProtocolError)
    assert not cloud.lanes


async def _silent(_requests: Any, context: Any) -> None:
    """Read and never answer."""
    while await context.read() is not grpc.aio.EOF:
        pass


async def _confused(_requests: Any, context: Any) -> None:
    """Answer with another session."""
    message = await context.read()
    opened = decode_up(message, lane=Lane.PREFILL).open
    assert opened is not None
    await context.write(encode_down(Frame(unit=WARM_UP, open=LaneOpen(99, opened.lane))))
    await _silent(_requests, context)


async def _no_tasks(_requests: Any, _context: Any) -> None:
    """No task is told."""


async def _edge_against(carry_frames: CarryFrames) -> None:
    """Open lanes at a server whose lanes behave as `carry_frames` does."""
    server = GrpcServer("127.0.0.1:0", carries_lanes=True)
    server.add(CLOUD_SERVICE, cloud_service_handler(_no_tasks, carry_frames=carry_frames))
    await server.start()
    try:
        async with lane_edge(f"127.0.0.1:{server.port}", timeout_s=0.3):
            pytest.fail("the lanes opened")
    finally:
        await server.stop(grace_s=0)


async def test_a_cloud_that_does_not_answer_is_given_up_in_time() -> None:
    with pytest.raises(UnavailableError, match=r"were not warm within 0\.3 s"):
        await _edge_against(_silent)


async def test_a_cloud_that_answers_something_else_is_not_believed() -> None:
    with pytest.raises(ProtocolError, match="is it a cloud engine"):
        await _edge_against(_confused)


async def test_a_server_without_lanes_is_told_as_such() -> None:
    server = GrpcServer("127.0.0.1:0")
    await server.start()
    with pytest.raises(SessionLostError, match="the prefill lane broke: Method not found"):
        async with lane_edge(f"127.0.0.1:{server.port}"):
            pytest.fail("the lanes opened")
    await server.stop(grace_s=0)
