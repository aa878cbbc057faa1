"""A mesh in virtual time: the three real cores, engines whose units take the time of a profile, and a link.

What it leaves out: the cost of control messages on the CPU, noise, and the growth of attention with the context beyond
what the profile's times per token say. What it has: every rule, every message, every byte of hidden states.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.cloud_core import CloudCore
from edgeweave.interleave.edge_core import EdgeCore
from edgeweave.interleave.effects import (
    DropUnit,
    FrameArrived,
    RunFused,
    RunFusedHead,
    RunHead,
    RunSegment,
    RunStep,
    RunTail,
    SendPiece,
    SendResult,
    Tell,
    UnitEnded,
)
from edgeweave.interleave.ledger import Ledger
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import (
    Attached,
    DType,
    Fingerprint,
    KvCapacity,
    Lane,
    LanesReady,
    Segment,
    count_tokens,
)
from edgeweave.interleave.plans import FIRST_PLAN, PlanRequest
from edgeweave.interleave.protocol import PROTOCOL
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import (
    Connected,
    Emit,
    EndSession,
    FromEngine,
    Refuse,
    SchedulerEffect,
    SchedulerEvent,
    ToEngine,
)
from edgeweave.sim.events import Events
from edgeweave.sim.profile import Profile
from edgeweave.sim.unit_times import cloud_unit_us, edge_unit_us
from edgeweave.sim.wire import Direction

LOCAL_US = 150
"""One way between two processes of the site."""
HANDOVER_US = 200
"""From the end of a unit until the next may begin: an engine takes what came, and chooses. Results leave before."""
TASK_BYTES = 200
"""A control message on the link; what matters is the delay."""
REPORT_INTERVAL_US = 100_000
AMPLE_KV = KvCapacity(block_tokens=16, num_blocks=1 << 20)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is simulated. Without a link (`one_way_us` is `None`) one engine on cloud hardware holds all layers.

    `endpoint_us` is what both ends of a lane take to send and receive a frame, one way: threads, gRPC, the kernel.
    """

    profile: Profile
    plan: PlanRequest
    limits: Limits
    one_way_us: int | None
    bytes_per_us: float = 1250.0
    piece_tokens: int = 256
    max_grace_us: int = 10_000
    kv: KvCapacity = AMPLE_KV
    frame_bytes: int = 256 * 1024
    endpoint_us: int = 0

    @property
    def centralized(self) -> bool:
        """Whether one engine holds all layers."""
        return self.one_way_us is None

    @property
    def frame_rows(self) -> int:
        """Rows of hidden states in a full frame."""
        return max(1, self.frame_bytes // self.profile.token_bytes)

    @property
    def body(self) -> Segment:
        """Layers of the cloud."""
        profile = self.profile
        if self.centralized:
            return Segment(profile.num_layers, profile.num_layers)
        return Segment(profile.head_layers, profile.num_layers - profile.tail_layers)


@dataclass(slots=True)
class SimMesh:
    """One mesh. Times are microseconds of the virtual clock; `on_token` hears each token with its time."""

    shape: Shape
    on_token: Callable[[Emit, int], None]
    events: Events = field(default_factory=Events)
    scheduler: SchedulerCore = field(init=False)
    edge: EdgeCore = field(init=False)
    cloud: CloudCore = field(init=False)
    up: Direction = field(init=False)
    down: Direction = field(init=False)
    _tasks_up: Direction = field(init=False)
    _reports_down: Direction = field(init=False)
    _edge_free_us: int = 0
    _cloud_free_us: int = 0
    _wake_us: int | None = None
    _is_reporting: bool = False

    def __post_init__(self) -> None:
        """Put the mesh together and connect its session."""
        shape = self.shape
        self.scheduler = SchedulerCore(shape.limits, shape.plan, shape.max_grace_us)
        self.edge = EdgeCore(FIRST_PLAN, Ledger(0), shape.piece_tokens, holds_body=shape.centralized)
        self.cloud = CloudCore(shape.body, FIRST_PLAN, Ledger(0))
        self.up = self._direction(self._feed_cloud)
        self.down = self._direction(self._feed_edge)
        self._tasks_up = self._direction(self._feed_cloud)
        self._reports_down = self._direction(self._from_cloud)
        self._connect()

    def tell(self, event: SchedulerEvent) -> None:
        """Give the scheduler an event."""
        self._carry_out(self.scheduler.on(event, now_us=self.events.now_us))

    def submit(self, request_id: str, *, num_prompt_tokens: int, num_output_tokens: int) -> None:
        """A client asks; its output has exactly `num_output_tokens`."""
        if not self._is_reporting:
            self._is_reporting = True
            self.events.after(REPORT_INTERVAL_US, self._report)
        self.tell(Request(request_id, (0,) * num_prompt_tokens, num_output_tokens, arrived_us=self.events.now_us))

    def _direction(self, deliver: Callable[[Any], None]) -> Direction:
        shape = self.shape
        frame_bytes = shape.frame_rows * shape.profile.token_bytes
        delay_us = (shape.one_way_us or 0) + shape.endpoint_us
        return Direction(self.events, delay_us, shape.bytes_per_us, deliver, frame_bytes)

    # ---- scheduler

    def _connect(self) -> None:
        shape = self.shape
        fingerprint = Fingerprint(
            b"", b"", shape.profile.head_layers, shape.profile.tail_layers, DType.BFLOAT16, PROTOCOL
        )
        attached = Attached(fingerprint, shape.kv, 1 << 40, 0, shape.body, shape.profile.token_bytes)
        rtt_us = 2 * ((shape.one_way_us or 0) + shape.endpoint_us) + LOCAL_US
        lanes = LanesReady(rtt_us, round(shape.bytes_per_us * 1_000_000))
        if shape.centralized:
            self.tell(Connected(1, attached, None, None))
        else:
            self.tell(Connected(1, attached, attached, lanes))

    def _carry_out(self, effects: list[SchedulerEffect]) -> None:
        for effect in effects:
            match effect:
                case Emit():
                    self.on_token(effect, self.events.now_us)
                case ToEngine(side=Side.EDGE):
                    self.events.after(LOCAL_US, partial(self._feed_edge, effect.task))
                case ToEngine():
                    self._tasks_up.send(Lane.DECODE, effect.task, num_bytes=TASK_BYTES)
                case Refuse():
                    raise effect.error
                case EndSession():
                    raise RuntimeError(f"the simulated session ended: {effect.reason}")

    def _from_cloud(self, message: Any) -> None:
        self.tell(FromEngine(Side.CLOUD, message))

    def _from_edge(self, message: Any) -> None:
        self.tell(FromEngine(Side.EDGE, message))

    def _report(self) -> None:
        """Send both timelines, as the engines do, until nothing is open any more."""
        now_us = self.events.now_us
        edge = self.edge.take_timeline(now_us=now_us)
        self.events.after(LOCAL_US, partial(self._from_edge, edge))
        if not self.shape.centralized:
            self._reports_down.send(Lane.DECODE, self.cloud.take_timeline(now_us=now_us), num_bytes=TASK_BYTES)
        self._is_reporting = not self.scheduler.is_idle
        if self._is_reporting:
            self.events.after(REPORT_INTERVAL_US, self._report)

    # ---- edge

    def _feed_edge(self, event: Any) -> None:
        self._carry_out_edge(self.edge.on(event, now_us=self.events.now_us))
        self._poll_edge()

    def _end_edge_unit(self, ended: UnitEnded) -> None:
        """Let what the unit made go at once; the next one has to wait for the handover."""
        self._carry_out_edge(self.edge.on(ended, now_us=self.events.now_us))
        self._edge_free_us = self.events.now_us + HANDOVER_US
        self.events.at(self._edge_free_us, self._poll_edge)

    def _poll_edge(self) -> None:
        while not self.edge.is_running and self.events.now_us >= self._edge_free_us:
            effects = self.edge.poll(now_us=self.events.now_us)
            if not effects:
                return
            self._carry_out_edge(effects)

    def _carry_out_edge(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case RunHead() | RunTail() | RunFusedHead():
                    tokens = (0,) * len(effect.draws) if isinstance(effect, RunTail) else ()
                    ended = UnitEnded(tokens)
                    took_us = edge_unit_us(self.shape.profile, effect, is_centralized=self.shape.centralized)
                    self.events.after(took_us, partial(self._end_edge_unit, ended))
                case SendPiece():
                    self._send_piece(effect)
                case DropUnit():
                    self.up.drop(effect.lane, effect.unit)
                case Tell():
                    self.events.after(LOCAL_US, partial(self._from_edge, effect.message))

    def _send_piece(self, effect: SendPiece) -> None:
        frame = FrameArrived(
            effect.lane,
            effect.unit,
            effect.row_start,
            effect.row_stop,
            effect.num_rows,
            self.events.now_us,
            rows=effect.rows,
        )
        num_bytes = (effect.row_stop - effect.row_start) * self.shape.profile.token_bytes
        self.up.send(effect.lane, frame, num_bytes=num_bytes)

    # ---- cloud

    def _feed_cloud(self, event: Any) -> None:
        self._carry_out_cloud(self.cloud.on(event, now_us=self.events.now_us))
        self._poll_cloud()

    def _end_cloud_unit(self) -> None:
        """Let what the unit made go at once; the next one has to wait for the handover."""
        self._carry_out_cloud(self.cloud.on(UnitEnded(), now_us=self.events.now_us))
        self._cloud_free_us = self.events.now_us + HANDOVER_US
        self.events.at(self._cloud_free_us, self._poll_cloud)

    def _poll_cloud(self) -> None:
        if self.events.now_us < self._cloud_free_us:
            return
        if not self.cloud.is_running:
            self._carry_out_cloud(self.cloud.poll(now_us=self.events.now_us))
        wake_us = self.cloud.wake_us(now_us=self.events.now_us)
        if wake_us is not None and wake_us != self._wake_us:
            self._wake_us = wake_us
            self.events.at(wake_us, self._poll_cloud)

    def _carry_out_cloud(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case RunSegment() | RunStep() | RunFused():
                    took_us = cloud_unit_us(self.shape.profile, effect)
                    self.events.after(took_us, self._end_cloud_unit)
                case SendResult():
                    self._send_result(effect)
                case DropUnit():
                    self.down.drop(effect.lane, effect.unit)
                case Tell():
                    self._reports_down.send(Lane.DECODE, effect.message, num_bytes=TASK_BYTES)

    def _send_result(self, effect: SendResult) -> None:
        """Send the first frame by itself, and the others as one.

        The edge learns from the first how long a clean trip is; it waits for the last, and for none in between.
        """
        num_rows = count_tokens(effect.rows)
        first_stop = min(self.shape.frame_rows, num_rows)
        spans = [(0, first_stop), (first_stop, num_rows)]
        for start, stop in [(start, stop) for start, stop in spans if start < stop]:
            frame = FrameArrived(effect.lane, effect.unit, start, stop, num_rows, self.events.now_us)
            self.down.send(effect.lane, frame, num_bytes=(stop - start) * self.shape.profile.token_bytes)
