"""Keeps a session: attaches both engines, compares them, waits for the lanes, serves, and begins again.

Knows the state machine of the session. Does not know requests: the driver is told when a session serves and when it
does not.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import Enum
from functools import partial

import grpc
import structlog

from edgeweave.errors import (
    EdgeweaveError,
    LaneClosedError,
    MismatchError,
    ProtocolError,
    SessionLostError,
    UnavailableError,
)
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Attached, LanesReady
from edgeweave.interleave.scheduler_events import Connected, FromEngine, StopAdmission
from edgeweave.rpc.channels import connect, dial
from edgeweave.rpc.options import Keepalive
from edgeweave.settings.scheduler import SchedulerSettings
from edgeweave.v1.cloud_pb2_grpc import CloudServiceStub
from edgeweave.v1.edge_pb2_grpc import EdgeServiceStub
from edgeweave.wire.messages import (
    AttachCloud,
    AttachEdge,
    CloudReport,
    EdgeReport,
    cloud_report_of,
    cloud_task_message,
    edge_report_of,
    edge_task_message,
)
from edgeweave_scheduler.backoff import Backoff
from edgeweave_scheduler.compare import check_sides
from edgeweave_scheduler.driver import Driver
from edgeweave_scheduler.health_watch import stops_serving
from edgeweave_scheduler.site import site_token
from edgeweave_scheduler.task_stream import ReasonLostError, TaskStream

Report = EdgeReport | CloudReport
ATTACH_TIMEOUT_S = 10.0
LANES_TIMEOUT_S = 60.0
REASON_TIMEOUT_S = 0.5
# Reasons that do not say what happened, the vaguest last.
_VAGUE = (ReasonLostError, LaneClosedError)
SERVICES = {Side.EDGE: "edgeweave.v1.EdgeService", Side.CLOUD: "edgeweave.v1.CloudService"}
_log = structlog.get_logger(__name__)


class SessionState(Enum):
    """State of the session. Values are the numbers of the contract."""

    DOWN = 1
    CONNECTING = 2
    READY = 3
    DRAINING = 4


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that is attached: its channel, its task stream, and what it holds."""

    channel: grpc.aio.Channel
    stream: TaskStream
    attached: Attached


class SessionKeeper:
    """Opens one session after the other. Session numbers rise from `now_ms`, wall-clock time."""

    def __init__(
        self,
        driver: Driver,
        *,
        settings: SchedulerSettings,
        now_ms: Callable[[], int],
        on_state: Callable[[SessionState], None],
    ) -> None:
        self.state = SessionState.DOWN
        self.reason: str | None = "no session yet"
        self.number = 0
        self._driver = driver
        self._settings = settings
        self._now_ms = now_ms
        self._on_state = on_state
        self._backoff = Backoff(settings.connect_backoff_s, settings.max_connect_backoff_s)

    async def run(self) -> None:
        """Open sessions until cancelled; wait longer after each failure."""
        while True:
            try:
                await self._serve_one()
            except EdgeweaveError as error:
                await self._rest(error)
            except Exception as error:  # noqa: BLE001 - the border of the session: whatever it is, the next one begins
                _log.error("session_failed", session=self.number, exc_info=error)
                await self._rest(EdgeweaveError("an internal error in the scheduler, see its log"))

    async def _rest(self, error: EdgeweaveError) -> None:
        """Tell that the session is over because of `error`, and wait before the next one."""
        self._set(SessionState.DOWN, reason=str(error))
        self._driver.disconnect(str(error))
        wait_s = self._backoff.next_s(is_hopeless=isinstance(error, MismatchError))
        _log.warning("session_down", session=self.number, reason=str(error), retry_s=wait_s)
        await asyncio.sleep(wait_s)

    async def _serve_one(self) -> None:
        """Serve one session; ends by raising why it ended."""
        self._set(SessionState.CONNECTING, reason=self.reason)
        self.number = max(self.number + 1, self._now_ms())
        async with AsyncExitStack() as stack:
            cloud = await self._attach_cloud(stack) if self._settings.cloud is not None else None
            edge = await self._attach_edge(stack)
            self._check(edge.attached, cloud.attached if cloud is not None else None)
            lanes = await self._lanes(edge) if cloud is not None else None
            attached = cloud.attached if cloud is not None else None
            engines = [edge] if cloud is None else [edge, cloud]
            self._backoff.reset()
            self._driver.connect(
                Connected(self.number, edge.attached, attached, lanes), {e.stream.side: e.stream for e in engines}
            )
            self._set(SessionState.READY, reason=None)
            _log.info("session_ready", session=self.number, lanes=lanes)
            raise await self._carry(engines)

    async def _attach_cloud(self, stack: AsyncExitStack) -> Engine:
        target = self._settings.cloud or ""
        channel = await self._dial(target, stack)
        call = CloudServiceStub(channel).RunCloudTasks()
        stream = TaskStream(Side.CLOUD, target=target, call=call, encode=cloud_task_message, decode=cloud_report_of)
        stack.callback(call.cancel)
        attach = AttachCloud(self.number, site=site_token(self._settings.site))
        return Engine(channel, stream, _attached(await stream.ask(attach, timeout_s=ATTACH_TIMEOUT_S)))

    async def _attach_edge(self, stack: AsyncExitStack) -> Engine:
        settings = self._settings
        channel = await self._dial(settings.edge, stack)
        call = EdgeServiceStub(channel).RunEdgeTasks()
        stream = TaskStream(Side.EDGE, target=settings.edge, call=call, encode=edge_task_message, decode=edge_report_of)
        stack.callback(call.cancel)
        attach = AttachEdge(
            self.number,
            cloud_target=settings.edge_cloud_target or settings.cloud,
            max_chunk_tokens=self._driver.core.limits.largest_chunk,
        )
        return Engine(channel, stream, _attached(await stream.ask(attach, timeout_s=ATTACH_TIMEOUT_S)))

    async def _dial(self, target: str, stack: AsyncExitStack) -> grpc.aio.Channel:
        keepalive = Keepalive(self._settings.keepalive_s, self._settings.keepalive_s)
        channel = dial(target, keepalive=keepalive, tls=self._settings.tls)
        stack.push_async_callback(channel.close)
        await connect(channel, target=target, timeout_s=ATTACH_TIMEOUT_S)
        return channel

    def _check(self, edge: Attached, cloud: Attached | None) -> None:
        core = self._driver.core
        check_sides(edge, cloud, limits=core.limits, max_prefills=core.plan.max_prefills)

    async def _lanes(self, edge: Engine) -> LanesReady:
        """Wait for the lanes; timelines may come before."""
        while True:
            report = await edge.stream.next_report(timeout_s=LANES_TIMEOUT_S)
            if isinstance(report, LanesReady):
                return report

    async def _carry(self, engines: list[Engine]) -> EdgeweaveError:
        """Carry all task streams until one ends; the others end with it. Returns the reason that says most."""
        carrying = [asyncio.create_task(e.stream.carry(partial(self._take, e.stream.side))) for e in engines]
        watching = [asyncio.create_task(self._watch(engine, engines)) for engine in engines]
        try:
            ended, others = await asyncio.wait(carrying, return_when=asyncio.FIRST_COMPLETED)
            if others and _vagueness(_said(ended)):
                # The other engine's stream ends too, and may know why.
                also, _ = await asyncio.wait(others, timeout=REASON_TIMEOUT_S)
                ended |= also
            return _said(ended)
        finally:
            for task in [*carrying, *watching]:
                task.cancel()
            await asyncio.gather(*carrying, *watching, return_exceptions=True)

    async def _watch(self, engine: Engine, engines: list[Engine]) -> None:
        """When an engine is about to stop, let open requests end for a while; then end the session."""
        side = engine.stream.side
        if not await stops_serving(engine.channel, service=SERVICES[side]):
            return
        reason = f"the {side.value} engine at {engine.stream.target} stops"
        _log.info("session_draining", session=self.number, reason=reason)
        self._set(SessionState.DRAINING, reason=reason)
        self._driver.feed(StopAdmission(reason))
        try:
            async with asyncio.timeout(self._settings.drain_s):
                await self._driver.idle()
        except TimeoutError:
            _log.warning("drain_timed_out", session=self.number, drain_s=self._settings.drain_s)
        for each in engines:
            each.stream.end(UnavailableError(reason))

    def _take(self, side: Side, report: Report) -> None:
        if not isinstance(report, (Attached, LanesReady)):
            self._driver.feed(FromEngine(side, report))

    def _set(self, state: SessionState, *, reason: str | None) -> None:
        self.state, self.reason = state, reason
        self._on_state(state)


def reason_of(told: Iterable[EdgeweaveError]) -> EdgeweaveError:
    """Return the reason that says most, of those that task streams ended with; all of them where none says much."""
    reasons = sorted(told, key=_vagueness)
    if len(reasons) > 1 and _vagueness(reasons[0]):
        return SessionLostError("; ".join(map(str, reasons)))
    return reasons[0]


def _said(ended: Iterable[asyncio.Task[EdgeweaveError]]) -> EdgeweaveError:
    return reason_of(each.result() for each in ended)


def _vagueness(reason: EdgeweaveError) -> int:
    """Return how little `reason` says of what happened: 0 where it was told."""
    return next((place for place, kind in enumerate(_VAGUE, start=1) if isinstance(reason, kind)), 0)


def _attached(report: object) -> Attached:
    if not isinstance(report, Attached):
        raise ProtocolError(f"an engine answered attach with {type(report).__name__}; is it of another version?")
    return report
