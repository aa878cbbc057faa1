"""Three real cores joined by streams under a virtual clock, with a model of integers behind the engines.

Whoever drives it picks, again and again, one of the moves that are possible: deliver the head of one stream, end a
unit that runs, let time pass. Streams are ordered in themselves and not with each other, as on a network. All of it
is values, so that it can be copied: that is how a walk takes another way from the same place.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.cloud_core import CloudCore, CloudEvent
from edgeweave.interleave.edge_core import EdgeCore, EdgeEvent
from edgeweave.interleave.ledger import Ledger
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import (
    Attached,
    Chunk,
    ChunkDone,
    DType,
    ErrorCode,
    ExtendSequence,
    Fingerprint,
    KvCapacity,
    LanesReady,
    OpenSequence,
    Plan,
    PlanKind,
    Released,
    ReleaseSequences,
    Segment,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import (
    Connected,
    Disconnected,
    Emit,
    EndSession,
    FromEngine,
    Refuse,
    SchedulerEffect,
    SchedulerEvent,
    ToEngine,
    Watcher,
)
from edgeweave.interleave.session import Session
from fakes.shells import CloudShell, EdgeShell, Frame
from fakes.symbolic import STOP_TOKEN, SymbolicLayers

NUM_LAYERS = 5
BODY = Segment(1, 4)
NO_BODY = Segment(NUM_LAYERS, NUM_LAYERS)
STREAMS = ("to_edge", "to_cloud", "from_edge", "from_cloud", "up_p", "up_d", "down_p", "down_d")
RTT_US = 20

FromEdgeOrCloud = ChunkDone | StepDone | Released | UnitFailed | Timeline
ToEdgeOrCloud = OpenSequence | ExtendSequence | Chunk | ReleaseSequences | Plan


@dataclass(frozen=True, slots=True)
class Config:
    """One mesh. `frame_rows` cuts units into frames; `centralized` leaves the cloud away."""

    limits: Limits = field(default_factory=Limits)
    plan: PlanRequest = field(default_factory=lambda: PlanRequest(PlanKind.TWO_P_ONE_D))
    edge_kv: KvCapacity = field(default_factory=lambda: KvCapacity(4, 64))
    cloud_kv: KvCapacity = field(default_factory=lambda: KvCapacity(4, 64))
    piece_tokens: int = 3
    frame_rows: int = 2
    centralized: bool = False
    max_grace_us: int = 50
    edge_core: type[EdgeCore] = EdgeCore
    cloud_core: type[CloudCore] = CloudCore
    scheduler_core: type[SchedulerCore] = SchedulerCore


def unwatched(_event: SchedulerEvent | None, _effects: Sequence[SchedulerEffect], *, now_us: int) -> None:
    """See nothing."""
    del now_us


class Mesh:
    """The whole mesh in one object. `streams` holds what is on its way, by name."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.now_us = 0
        self.connected_us = 0
        self.reported_us = 0
        self.scheduler = config.scheduler_core(config.limits, config.plan, config.max_grace_us)
        self.number = 0
        self.emitted: dict[str, list[int]] = {}
        self.finished: set[str] = set()
        self.refused: dict[str, Exception] = {}
        self.ended_sessions: list[str] = []
        self.fail_next: ErrorCode | None = None
        self.streams: dict[str, deque[object]] = {}
        self.timelines: dict[Side, list[Timeline]] = {}
        self.watcher: Watcher = unwatched
        self.connect()

    @property
    def session(self) -> Session:
        """The session that serves."""
        assert self.scheduler.session is not None, "no session serves"
        return self.scheduler.session

    @property
    def shells(self) -> tuple[tuple[str, EdgeShell | CloudShell], ...]:
        """Both engines by name."""
        return ("edge", self.edge), ("cloud", self.cloud)

    # ---- sessions

    def connect(self) -> None:
        """Begin the next session with empty engines."""
        self.number += 1
        self.connected_us = self.now_us
        self.streams = {name: deque() for name in STREAMS}
        self.timelines = {side: [] for side in Side}
        body = NO_BODY if self.config.centralized else BODY
        self.edge = self._new_edge(body)
        self.cloud = self._new_cloud(body)
        edge, cloud = self._attached(self.config.edge_kv, body), self._attached(self.config.cloud_kv, body)
        lanes = LanesReady(rtt_us=RTT_US, prefill_bytes_per_s=1 << 20)
        is_whole = self.config.centralized
        self.tell(Connected(self.number, edge, None if is_whole else cloud, None if is_whole else lanes))

    def lose_session(self, reason: str) -> None:
        """Break the session: everything on its way and in the engines is gone."""
        self.tell(Disconnected(reason))
        self.connect()

    def _new_edge(self, body: Segment) -> EdgeShell:
        config = self.config
        core = config.edge_core(
            self.scheduler.plan, Ledger(self.now_us), config.piece_tokens, holds_body=config.centralized
        )
        head, tail = SymbolicLayers(0, body.start), SymbolicLayers(body.stop, NUM_LAYERS)
        return EdgeShell(core, head, tail, config.frame_rows)

    def _new_cloud(self, body: Segment) -> CloudShell:
        config = self.config
        core = config.cloud_core(body, self.scheduler.plan, Ledger(self.now_us))
        return CloudShell(core, SymbolicLayers(body.start, body.stop), config.frame_rows)

    def _attached(self, kv: KvCapacity, body: Segment) -> Attached:
        fingerprint = Fingerprint(b"m", b"w", 1, 1, DType.FLOAT32, 1)
        return Attached(fingerprint, kv, 1 << 20, self.now_us, body, 4)

    # ---- moves

    def moves(self) -> list[str]:
        """Return the moves that are possible now, in a fixed order."""
        names = [name for name, stream in self.streams.items() if stream]
        names += [f"end_{name}" for name, shell in self.shells if shell.running is not None]
        if self._may_wake() and self.cloud.core.wake_us(now_us=self.now_us) is not None:
            names.append("wake_cloud")
        return names

    def _may_wake(self) -> bool:
        """Whether the cloud could be waiting by choice: without a grace it never is."""
        return self.config.max_grace_us > 0 and self.cloud.running is None

    def move(self, name: str) -> None:
        """Make one move, and let the engine that it touched start what is ready."""
        if name == "wake_cloud":
            self.now_us = self.cloud.core.wake_us(now_us=self.now_us) or self.now_us
            self._poll(self.cloud)
        elif name.startswith("end_"):
            self._end_unit(self.edge if name == "end_edge" else self.cloud)
        else:
            self._deliver(name, self.streams[name].popleft())

    def run(self, choose: Callable[[list[str]], str], *, max_moves: int = 100_000) -> None:
        """Make chosen moves, a microsecond apart, until none is left."""
        for _ in range(max_moves):
            moves = self.moves()
            if not moves:
                return
            self.now_us += 1
            self.move(choose(moves))
        raise AssertionError(f"the mesh did not come to rest; moves: {self.moves()}")

    def report(self) -> None:
        """Send the timelines of both engines, and keep them until the session ends."""
        self.reported_us = self.now_us
        for side, (name, shell) in zip(Side, self.shells, strict=True):
            timeline = shell.core.take_timeline(now_us=self.now_us)
            self.timelines[side].append(timeline)
            self.streams[f"from_{name}"].append(timeline)

    def _end_unit(self, shell: EdgeShell | CloudShell) -> None:
        failure, self.fail_next = self.fail_next, None
        shell.end_unit(now_us=self.now_us, failure=failure)
        self._poll(shell)

    def _deliver(self, name: str, item: object) -> None:
        """Hand an item to whom it was sent."""
        if name in ("from_edge", "from_cloud"):
            side = Side.EDGE if name == "from_edge" else Side.CLOUD
            self.tell(FromEngine(side, cast("FromEdgeOrCloud", item)))
        elif name in ("to_edge", "down_p", "down_d"):
            self.edge.on(cast("EdgeEvent | Frame", item), now_us=self.now_us)
            self._poll(self.edge)
        else:
            self.cloud.on(cast("CloudEvent | Frame", item), now_us=self.now_us)
            self._poll(self.cloud)

    def _poll(self, shell: EdgeShell | CloudShell) -> None:
        """Let an engine start what is ready, and send what it has to send."""
        shell.poll(now_us=self.now_us)
        for name, item in shell.outbox:
            self.streams[name].append(item)
        shell.outbox.clear()

    # ---- scheduler

    def submit(self, request_id: str, prompt: tuple[int, ...], *, max_tokens: int) -> None:
        """A client asks."""
        self.tell(self._request(request_id, prompt, max_tokens))

    def queue(self, request_id: str, prompt: tuple[int, ...], *, max_tokens: int) -> None:
        """A client asks, in the same turn as others: the scheduler looks at all of them at `poll_scheduler`."""
        request = self._request(request_id, prompt, max_tokens)
        self.scheduler.requests[request_id] = request
        self.scheduler.waiting.append(request)

    def tell(self, event: SchedulerEvent) -> None:
        """Give the scheduler an event."""
        effects = self.scheduler.on(event, now_us=self.now_us)
        self.watcher(event, effects, now_us=self.now_us)
        self._carry_out(effects)

    def poll_scheduler(self) -> None:
        """Let the scheduler look at the time and the queue."""
        effects = self.scheduler.poll(now_us=self.now_us)
        self.watcher(None, effects, now_us=self.now_us)
        self._carry_out(effects)

    def _request(self, request_id: str, prompt: tuple[int, ...], max_tokens: int) -> Request:
        self.emitted[request_id] = []
        return Request(request_id, prompt, max_tokens, stop_token_ids=frozenset({STOP_TOKEN}), arrived_us=self.now_us)

    def _carry_out(self, effects: Sequence[SchedulerEffect]) -> None:
        for effect in effects:
            match effect:
                case ToEngine():
                    self.streams["to_edge" if effect.side is Side.EDGE else "to_cloud"].append(effect.task)
                case Emit():
                    self._emit(effect)
                case Refuse():
                    self.refused[effect.request_id] = effect.error
                case EndSession():
                    self.ended_sessions.append(effect.reason)

    def _emit(self, effect: Emit) -> None:
        output = self.emitted[effect.request_id]
        assert effect.request_id not in self.finished, "a token came after the last"
        assert effect.index == len(output), "a token came twice or was left out"
        output.append(effect.token_id)
        if effect.finish is not None:
            self.finished.add(effect.request_id)
