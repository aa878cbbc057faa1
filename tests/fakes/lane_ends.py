"""Both ends of the lanes, as engines that only remember what came.

`lane_cloud` serves lanes on a free port, `lane_edge` opens them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from edgeweave.clock import MonotonicClock
from edgeweave.errors import EdgeweaveError, StaleSessionError
from edgeweave.interleave.nouns import DType, Lane
from edgeweave.rpc.cloud_service import CLOUD_SERVICE, cloud_service_handler
from edgeweave.rpc.dialed_lane import LaneOptions
from edgeweave.rpc.lane_servicer import LaneServicer
from edgeweave.rpc.lanes import Lanes, open_lanes
from edgeweave.rpc.open_lane import OpenLane
from edgeweave.rpc.options import DEFAULT_KEEPALIVE, Keepalive
from edgeweave.rpc.server import GrpcServer
from edgeweave.v1 import cloud_pb2 as pb
from edgeweave.v1 import common_pb2
from edgeweave.wire.frames import Frame

SESSION = 7
ROW_BYTES = 2048


class RecordedLane:
    """A sink that keeps frames in a queue and the end in a future."""

    def __init__(self, lane: OpenLane) -> None:
        self.lane = lane
        self.frames: asyncio.Queue[Frame] = asyncio.Queue()
        self.ends: asyncio.Queue[EdgeweaveError] = asyncio.Queue()

    def on_frame(self, frame: Frame) -> None:
        self.frames.put_nowait(frame)

    def on_end(self, reason: EdgeweaveError) -> None:
        self.ends.put_nowait(reason)


class Cloud:
    """What the session at the cloud engine does with lanes."""

    def __init__(self, server: GrpcServer) -> None:
        self.server = server
        self.lanes: dict[Lane, RecordedLane] = {}

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def accept(self, session: int, lane: OpenLane) -> RecordedLane:
        if session != SESSION:
            raise StaleSessionError(f"session {session} is not served here, {SESSION} is; attach again")
        return self.lanes.setdefault(lane.lane, RecordedLane(lane))


@dataclass
class Edge:
    """What the edge engine sees of the lanes."""

    lanes: Lanes
    frames: dict[Lane, asyncio.Queue[Frame]]


@asynccontextmanager
async def lane_cloud(*, keepalive: Keepalive = DEFAULT_KEEPALIVE, prefill_pace: str = "auto") -> AsyncIterator[Cloud]:
    """Serve the lanes of session 7."""
    server = GrpcServer("127.0.0.1:0", carries_lanes=True, keepalive=keepalive)
    cloud = Cloud(server)
    servicer = LaneServicer(cloud.accept, clock=MonotonicClock(), prefill_pace=prefill_pace)
    server.add(CLOUD_SERVICE, cloud_service_handler(_echo_tasks, carry_frames=servicer.carry_frames))
    await server.start()
    try:
        yield cloud
    finally:
        await server.stop(grace_s=0)


@asynccontextmanager
async def lane_edge(
    target: str,
    *,
    session: int = SESSION,
    max_chunk_tokens: int = 64,
    connect_timeout_s: float = 5.0,
    timeout_s: float = 30.0,
    keepalive: Keepalive = DEFAULT_KEEPALIVE,
    prefill_pace: str = "auto",
    link_gbit: float | None = None,
) -> AsyncIterator[Edge]:
    """Open the lanes of a session to `target`."""
    frames: dict[Lane, asyncio.Queue[Frame]] = {lane: asyncio.Queue() for lane in Lane}
    options = LaneOptions(
        row_bytes=ROW_BYTES,
        dtype=DType.FLOAT32,
        max_chunk_tokens=max_chunk_tokens,
        keepalive=keepalive,
        connect_timeout_s=connect_timeout_s,
        timeout_s=timeout_s,
        prefill_pace=prefill_pace,
        link_gbit=link_gbit,
    )
    async with open_lanes(
        target,
        session=session,
        options=options,
        on_frame=lambda lane, frame: frames[lane].put_nowait(frame),
        clock=MonotonicClock(),
    ) as lanes:
        yield Edge(lanes, frames)


async def _echo_tasks(
    requests: AsyncIterator[pb.RunCloudTasksRequest], _context: object
) -> AsyncIterator[pb.RunCloudTasksResponse]:
    """Answer each release with the same sequences."""
    async for request in requests:
        yield pb.RunCloudTasksResponse(released=common_pb2.Released(sequences=request.release.sequences))
