"""A whole mesh in one process: real cores, real models, real gRPC on loopback, one event loop.

Scheduler, edge and cloud are composed as their `__main__` does; each engine has its compute thread. Between them lie
TCP proxies, so that a test can cut a stream or silence it: the prefill lane is the first connection of a session
through `wires.lanes`, the decode lane the second.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from edgeweave import Client
from edgeweave.client.mesh_state import MeshState
from edgeweave.clock import MonotonicClock
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import GREEDY, KvCapacity, Sampling
from edgeweave.rpc.server import GrpcServer
from edgeweave.settings import SchedulerSettings
from edgeweave.telemetry import tracer_provider
from edgeweave.v1.scheduler_pb2_grpc import add_SchedulerServiceServicer_to_server
from edgeweave_scheduler.__main__ import SCHEDULER_SERVICE, make_core
from edgeweave_scheduler.keeper import SessionKeeper, SessionState
from edgeweave_scheduler.servicer import SchedulerServicer
from fakes.real_engines import ANY_PORT, Holdings, ServedCloud, ServedEdge, serve_cloud, serve_edge
from fakes.real_models import ONE_PLACE, FaultyCloud, FaultyEdge, cloud_model, edge_model
from fakes.tcp_proxy import TcpProxy, tcp_proxy
from fakes.watched import LONGEST_WAIT_S, Notice, WatchedDriver

AMPLE_KV = KvCapacity(block_tokens=4, num_blocks=256)


@dataclass(frozen=True)
class MeshShape:
    """What a mesh is made of; `scheduler` holds its settings where they are not the default.

    `cloud_split` is the split of the cloud where it differs from the edge's, which no session accepts.
    """

    model: Path
    split: str = "1:1"
    cloud_split: str | None = None
    edge_kv: KvCapacity = AMPLE_KV
    cloud_kv: KvCapacity = AMPLE_KV
    piece_tokens: int = 8
    frame_bytes: int = 4096
    staging_bytes: int = 64 << 20
    keepalive_s: float = 10.0
    scheduler: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_centralized(self) -> bool:
        """Whether the edge holds all layers."""
        return self.split == ONE_PLACE

    @property
    def edge_model(self) -> FaultyEdge:
        """The edge's share of the model."""
        return edge_model(self.model, split=self.split, kv=self.edge_kv)

    @property
    def cloud_model(self) -> FaultyCloud:
        """The body of the model."""
        return cloud_model(self.model, split=self.cloud_split or self.split, kv=self.cloud_kv)


@dataclass(frozen=True)
class Wires:
    """The connections of a mesh; those to the cloud are absent where the edge holds all layers."""

    edge_tasks: TcpProxy
    cloud_tasks: TcpProxy | None = None
    lanes: TcpProxy | None = None


@dataclass(frozen=True)
class RealMesh:
    """A mesh that serves, or tries to."""

    client: Client
    target: str
    notice: Notice
    driver: WatchedDriver
    keeper: SessionKeeper
    edge: ServedEdge
    cloud: ServedCloud | None
    wires: Wires
    settings: SchedulerSettings

    @property
    def models(self) -> list[FaultyEdge | FaultyCloud]:
        """The models of all engines."""
        return [self.edge.model] if self.cloud is None else [self.edge.model, self.cloud.model]

    @property
    def sides(self) -> list[Side]:
        """The sides that hold layers."""
        return [Side.EDGE] if self.cloud is None else list(Side)

    async def ready(self, *, after: int = 0) -> None:
        """Return when a session with a number above `after` serves."""
        await self.notice.until(lambda: self.keeper.state is SessionState.READY and self.keeper.number > after)

    async def state(self, condition: Callable[[MeshState], bool] = lambda _: True) -> MeshState:
        """Return the first state that `WatchMesh` tells and `condition` accepts."""
        async with asyncio.timeout(LONGEST_WAIT_S), aclosing(self.client.watch_mesh(interval_s=0.01)) as states:
            async for state in states:
                if condition(state):
                    return state
        raise AssertionError("WatchMesh ended by itself")

    async def answer(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        sampling: Sampling = GREEDY,
        request_id: str | None = None,
        output: Sequence[int] = (),
    ) -> list[int]:
        """Return the tokens of one request, those of `output` not included."""
        deltas = self.client.generate(
            prompt, max_tokens=max_tokens, sampling=sampling, request_id=request_id, output_token_ids=output
        )
        return [token_id async for delta in deltas for token_id in delta.token_ids]


@asynccontextmanager
async def real_mesh(shape: MeshShape, *, waits: bool = True) -> AsyncIterator[RealMesh]:
    """Serve a mesh of `shape` until the block ends; with `waits` a session serves when the block begins."""
    async with AsyncExitStack() as stack:
        holdings = Holdings(shape.frame_bytes, shape.staging_bytes, shape.keepalive_s)
        cloud = None if shape.is_centralized else await serve_cloud(stack, shape.cloud_model, holdings)
        edge = await serve_edge(stack, shape.edge_model, holdings, piece_tokens=shape.piece_tokens)
        wires, targets = await _lay_wires(stack, edge, cloud)
        settings = SchedulerSettings.model_validate(
            {"connect_backoff_s": 0.01, "max_connect_backoff_s": 0.3, "keepalive_s": shape.keepalive_s}
            | targets
            | dict(shape.scheduler)
        )
        notice = Notice()
        driver, keeper, target = await serve_scheduler(stack, settings, notice=notice)
        client = await stack.enter_async_context(Client(target))
        mesh = RealMesh(client, target, notice, driver, keeper, edge, cloud, wires, settings)
        if waits:
            await mesh.ready()
        try:
            yield mesh
        finally:
            for model in mesh.models:
                model.faults.let_go()


async def serve_scheduler(
    stack: AsyncExitStack, settings: SchedulerSettings, *, notice: Notice
) -> tuple[WatchedDriver, SessionKeeper, str]:
    """Serve a scheduler until `stack` closes; returns it and its `host:port`."""
    driver = WatchedDriver(make_core(settings), clock=MonotonicClock(), notice=notice)
    keeper = SessionKeeper(
        driver,
        settings=settings,
        now_ms=lambda: time.time_ns() // 1_000_000,
        on_state=lambda _state: notice.tell(),
    )
    tracer = tracer_provider("scheduler", processor=None).get_tracer("test")
    server = GrpcServer(ANY_PORT)
    servicer = SchedulerServicer(driver, keeper=keeper, tracer=tracer)
    server.add(SCHEDULER_SERVICE, partial(add_SchedulerServiceServicer_to_server, servicer))
    await server.start()
    stack.push_async_callback(server.stop, grace_s=0)
    stack.push_async_callback(_cancelled, asyncio.create_task(keeper.run()))
    return driver, keeper, f"127.0.0.1:{server.port}"


async def _lay_wires(
    stack: AsyncExitStack, edge: ServedEdge, cloud: ServedCloud | None
) -> tuple[Wires, dict[str, str | None]]:
    """Return the proxies, and the targets that lead through them as settings of the scheduler."""
    edge_tasks, edge_target = await stack.enter_async_context(tcp_proxy(edge.server.port))
    if cloud is None:
        return Wires(edge_tasks), {"edge": edge_target, "cloud": None}
    cloud_tasks, cloud_target = await stack.enter_async_context(tcp_proxy(cloud.server.port))
    lanes, lanes_target = await stack.enter_async_context(tcp_proxy(cloud.server.port))
    targets: dict[str, str | None] = {"edge": edge_target, "cloud": cloud_target, "edge_cloud_target": lanes_target}
    return Wires(edge_tasks, cloud_tasks, lanes), targets


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
