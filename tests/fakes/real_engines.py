"""Real engines on loopback, composed as their `__main__` does: a model, a compute thread, a gRPC server.

Knows one engine at a time. Does not know who dials it.
"""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from edgeweave.clock import MonotonicClock
from edgeweave.engine.worker import Worker
from edgeweave.rpc.cloud_service import CLOUD_SERVICE, cloud_service_handler
from edgeweave.rpc.lane_servicer import LaneServicer
from edgeweave.rpc.options import Keepalive
from edgeweave.rpc.server import GrpcServer
from edgeweave.settings import EdgeSettings
from edgeweave.v1.edge_pb2_grpc import add_EdgeServiceServicer_to_server
from edgeweave_cloud.servicer import CloudServicer
from edgeweave_edge.__main__ import EDGE_SERVICE
from edgeweave_edge.servicer import EdgeServicer
from fakes.real_models import FaultyCloud, FaultyEdge

ANY_PORT = "127.0.0.1:0"


@dataclass(frozen=True)
class Holdings:
    """What both engines have in common: bytes of a frame, bytes of staging, seconds between two signs of life."""

    frame_bytes: int
    staging_bytes: int
    keepalive_s: float

    @property
    def keepalive(self) -> Keepalive:
        """How soon a silent peer is noticed."""
        return Keepalive(self.keepalive_s, self.keepalive_s)


@dataclass(frozen=True)
class ServedEdge:
    """An edge engine and what it is made of; `target` is the engine itself, not the proxy in front of it."""

    servicer: EdgeServicer
    server: GrpcServer
    model: FaultyEdge
    target: str


@dataclass(frozen=True)
class ServedCloud:
    """A cloud engine, likewise."""

    servicer: CloudServicer
    server: GrpcServer
    model: FaultyCloud
    target: str


async def serve_cloud(stack: AsyncExitStack, model: FaultyCloud, holdings: Holdings) -> ServedCloud:
    """Serve a cloud engine until `stack` closes."""
    clock = MonotonicClock()
    worker = Worker(clock=clock)
    servicer = CloudServicer(
        model,
        worker=worker,
        clock=clock,
        frame_bytes=holdings.frame_bytes,
        staging_bytes=holdings.staging_bytes,
    )
    server = GrpcServer(ANY_PORT, keepalive=holdings.keepalive, carries_lanes=True)
    lanes = LaneServicer(servicer.accept, clock=clock)
    server.add(CLOUD_SERVICE, cloud_service_handler(servicer.run_cloud_tasks, carry_frames=lanes.carry_frames))
    await _start(stack, server, worker)
    return ServedCloud(servicer, server, model, f"127.0.0.1:{server.port}")


async def serve_edge(stack: AsyncExitStack, model: FaultyEdge, holdings: Holdings, *, piece_tokens: int) -> ServedEdge:
    """Serve an edge engine until `stack` closes; a head runs in pieces of `piece_tokens`."""
    clock = MonotonicClock()
    worker = Worker(clock=clock)
    settings = EdgeSettings(model=Path("loaded"), head_piece_tokens=piece_tokens).model_copy(
        # Tiny models have tiny rows: frames of a few of them are smaller than any that a user may set.
        update={
            "frame_bytes": holdings.frame_bytes,
            "staging_bytes": holdings.staging_bytes,
            "keepalive_s": holdings.keepalive_s,
        }
    )
    servicer = EdgeServicer(model, worker=worker, clock=clock, settings=settings)
    server = GrpcServer(ANY_PORT, keepalive=holdings.keepalive)
    server.add(EDGE_SERVICE, partial(add_EdgeServiceServicer_to_server, servicer))
    await _start(stack, server, worker)
    return ServedEdge(servicer, server, model, f"127.0.0.1:{server.port}")


async def _start(stack: AsyncExitStack, server: GrpcServer, worker: Worker) -> None:
    worker.start()
    stack.callback(worker.stop)
    await server.start()
    stack.push_async_callback(server.stop, grace_s=0.2)
