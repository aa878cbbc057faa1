"""Three real cores joined by queues under a virtual clock, with a model of integers behind the engines.

Whoever drives it picks, again and again, one of the moves that are possible: deliver the head of one stream, end a
unit that runs, let time pass. Streams are ordered in themselves and not with each other, as on a network.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.cloud_core import CloudCore
from edgeweave.interleave.edge_core import EdgeCore
from edgeweave.interleave.effects import (
    DropUnit,
    FrameArrived,
    FreeKv,
    RunHead,
    RunSegment,
    RunStep,
    RunTail,
    SendFailure,
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
    ErrorCode,
    Fingerprint,
    KvCapacity,
    Lane,
    LanesReady,
    PlanKind,
    Row,
    Segment,
)
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_core import (
    Connected,
    Disconnected,
    Emit,
    EndSession,
    FromEngine,
    Refuse,
    SchedulerCore,
    SchedulerEvent,
    ToEngine,
)
from fakes.symbolic import VOCAB, SymbolicLayers

NUM_LAYERS = 5
BODY = Segment(1, 4)


@dataclass(slots=True)
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


Values = list[int | None]


@dataclass(slots=True)
class Engine:
    """What both engine shells have: a core, staged values, and a unit that runs."""

    core: EdgeCore | CloudCore
    layers: tuple[SymbolicLayers, ...]
    staged: dict[tuple[Lane, int], Values] = field(default_factory=dict)
    running: Callable[[], UnitEnded] | None = None


class Mesh:
    """The whole mesh in one object. `streams` holds what is on its way, by name."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.now_us = 0
        self.scheduler = config.scheduler_core(config.limits, config.plan, config.max_grace_us)
        self.session = 0
        self.emitted: dict[str, list[int]] = {}
        self.finished: set[str] = set()
        self.refused: dict[str, Exception] = {}
        self.ended_sessions: list[str] = []
        self.streams: dict[str, deque[object]] = {}
        self.fail_next: ErrorCode | None = None
        self.connect()

    # ---- sessions

    def connect(self) -> None:
        """Begin the next session with empty engines."""
        self.session += 1
        plan = self.scheduler.plan
        body = Segment(NUM_LAYERS, NUM_LAYERS) if self.config.centralized else BODY
        head = SymbolicLayers(0, body.start)
        tail = SymbolicLayers(body.stop, NUM_LAYERS)
        edge_core = self.config.edge_core(
            plan, Ledger(self.now_us), self.config.piece_tokens, holds_body=self.config.centralized
        )
        self.edge = Engine(edge_core, (head, tail))
        cloud_core = self.config.cloud_core(body, plan, Ledger(self.now_us))
        self.cloud = Engine(cloud_core, (SymbolicLayers(body.start, body.stop),))
        names = ("to_edge", "to_cloud", "from_edge", "from_cloud", "up_p", "up_d", "down_p", "down_d")
        self.streams = {name: deque() for name in names}
        fingerprint = Fingerprint(b"m", b"w", 1, 1, DType.FLOAT32, 1)
        edge = Attached(fingerprint, self.config.edge_kv, 1 << 20, self.now_us, body, 4)
        cloud = Attached(fingerprint, self.config.cloud_kv, 1 << 20, self.now_us, body, 4)
        lanes = LanesReady(rtt_us=20, prefill_bytes_per_s=1 << 20)
        if self.config.centralized:
            self.tell(Connected(self.session, edge, None, None))
        else:
            self.tell(Connected(self.session, edge, cloud, lanes))

    def lose_session(self, reason: str) -> None:
        """Break the session: everything on its way and in the engines is gone."""
        self.tell(Disconnected(reason))
        self.connect()

    # ---- moves

    def moves(self) -> list[str]:
        """Return the moves that are possible now, in a fixed order."""
        names = [name for name, stream in self.streams.items() if stream]
        names += [f"end_{name}" for name, engine in self.engines() if engine.running is not None]
        if self.cloud.core.wake_us(now_us=self.now_us) is not None:
            names.append("wake_cloud")
        return names

    def engines(self) -> tuple[tuple[str, Engine], ...]:
        """Return both engines by name."""
        return ("edge", self.edge), ("cloud", self.cloud)

    def move(self, name: str) -> None:
        """Make one move."""
        if name == "wake_cloud":
            self.now_us = self.cloud.core.wake_us(now_us=self.now_us) or self.now_us
        elif name.startswith("end_"):
            self.end_unit(self.edge if name == "end_edge" else self.cloud)
        else:
            self.deliver(name, self.streams[name].popleft())
        self.poll()

    def run(self, choose: Callable[[list[str]], str], *, max_moves: int = 100_000) -> None:
        """Make chosen moves until none is left."""
        for _ in range(max_moves):
            moves = self.moves()
            if not moves:
                return
            self.now_us += 1
            self.move(choose(moves))
        raise AssertionError(f"the mesh did not come to rest; moves: {self.moves()}")

    def end_unit(self, engine: Engine) -> None:
        """End the unit that runs, with its result."""
        running, engine.running = engine.running, None
        assert running is not None
        event = running()
        if self.fail_next is not None:
            event, self.fail_next = UnitEnded(failure=self.fail_next), None
        self.carry_out(engine, engine.core.on(event, now_us=self.now_us))

    def deliver(self, name: str, item: object) -> None:
        """Hand an item to whom it was sent."""
        if name in ("from_edge", "from_cloud"):
            side = Side.EDGE if name == "from_edge" else Side.CLOUD
            self.tell(FromEngine(side, item))
        elif name in ("to_edge", "down_p", "down_d"):
            self.feed(self.edge, item)
        else:
            self.feed(self.cloud, item)

    def feed(self, engine: Engine, item: object) -> None:
        """Give an engine a task, or a frame with its values."""
        if isinstance(item, tuple):
            item, values = item
            staged = engine.staged.setdefault((item.lane, item.unit), [None] * item.num_rows)
            staged[item.row_start : item.row_stop] = values
        self.carry_out(engine, engine.core.on(item, now_us=self.now_us))

    def poll(self) -> None:
        """Let engines start what is ready."""
        for _, engine in self.engines():
            while engine.running is None:
                effects = engine.core.poll(now_us=self.now_us)
                if not effects:
                    break
                self.carry_out(engine, effects)

    def report(self) -> None:
        """Send the timelines of both engines."""
        for name, engine in self.engines():
            self.streams[f"from_{name}"].append(engine.core.take_timeline(now_us=self.now_us))

    # ---- scheduler

    def submit(self, request_id: str, prompt: tuple[int, ...], *, max_tokens: int) -> None:
        """A client asks."""
        self.emitted[request_id] = []
        request = Request(request_id, prompt, max_tokens, stop_token_ids=frozenset({0}), arrived_us=self.now_us)
        self.tell(request)

    def tell(self, event: SchedulerEvent) -> None:
        """Give the scheduler an event and carry out what follows."""
        for effect in self.scheduler.on(event, now_us=self.now_us):
            match effect:
                case ToEngine():
                    self.streams["to_edge" if effect.side is Side.EDGE else "to_cloud"].append(effect.task)
                case Emit():
                    output = self.emitted[effect.request_id]
                    assert effect.index == len(output), "a token came twice or was left out"
                    output.append(effect.token_id)
                    if effect.finish is not None:
                        self.finished.add(effect.request_id)
                case Refuse():
                    self.refused[effect.request_id] = effect.error
                case EndSession():
                    self.ended_sessions.append(effect.reason)

    # ---- effects of engines

    def carry_out(self, engine: Engine, effects: list[object]) -> None:
        """Do what an engine core asked for."""
        for effect in effects:
            match effect:
                case RunHead():
                    engine.running = lambda e=effect: self.run_head(e)
                case RunTail():
                    engine.running = lambda e=effect: self.run_tail(e)
                case RunSegment():
                    rows, segment = effect.chunk.rows, effect.segment
                    unit = (Lane.PREFILL, effect.chunk.chunk)
                    engine.running = lambda r=rows, u=unit, s=segment, live=effect.live: self.run_body(u, r, live, s)
                case RunStep():
                    rows, unit, body = effect.step.rows, (Lane.DECODE, effect.step.step), effect.body
                    engine.running = lambda r=rows, u=unit, s=body, live=effect.live: self.run_body(u, r, live, s)
                case SendPiece():
                    self.send_up(effect)
                case SendResult():
                    self.send_down(effect)
                case SendFailure():
                    self.cloud.staged.pop((effect.lane, effect.unit))
                    frame = FrameArrived(
                        effect.lane, effect.unit, 0, 0, 0, self.now_us, failed=effect.sequences, code=effect.code
                    )
                    self.streams[_down(effect.lane)].append((frame, []))
                case FreeKv():
                    for layers in engine.layers:
                        layers.free(effect.sequences)
                case DropUnit():
                    engine.staged.pop((effect.lane, effect.unit), None)
                    self.drop_unsent(engine, effect)
                case Tell():
                    name = "from_edge" if engine is self.edge else "from_cloud"
                    self.streams[name].append(effect.message)

    def drop_unsent(self, engine: Engine, effect: DropUnit) -> None:
        """A real writer may or may not have sent these frames; here they are all still to be delivered as stale."""

    def run_head(self, effect: RunHead) -> UnitEnded:
        """Embed and run the head layers; zeros for rows that are not live."""
        tokens = iter(effect.token_ids)
        head = self.edge.layers[0]
        values: Values = []
        for row, is_live in zip(effect.rows, effect.live, strict=True):
            for position in range(row.start, row.stop):
                run = head.run(row.sequence, position, next(tokens), start=0, stop=head.stop) if is_live else 0
                values.append(run)
        assert next(tokens, None) is None
        staged = self.edge.staged.setdefault((effect.lane, effect.unit), [None] * effect.num_rows)
        staged[effect.row_start : effect.row_stop] = values
        return UnitEnded()

    def run_tail(self, effect: RunTail) -> UnitEnded:
        """Run the tail layers and draw tokens."""
        staged = self.edge.staged[(effect.lane, effect.unit)][effect.row_start : effect.row_stop]
        tail = self.edge.layers[1]
        last: dict[int, int] = {}
        offset = 0
        for index, (row, is_live) in enumerate(zip(effect.rows, effect.live, strict=True)):
            for position in range(row.start, row.stop):
                value = staged[offset]
                assert value is not None
                offset += 1
                if is_live:
                    last[index] = tail.run(row.sequence, position, value, start=tail.start, stop=tail.stop)
        return UnitEnded(tuple(last[draw.row] % VOCAB for draw in effect.draws))

    def run_body(self, unit: tuple[Lane, int], rows: tuple[Row, ...], live: tuple[bool, ...], s: Segment) -> UnitEnded:
        """Run body layers over what is staged."""
        staged = self.cloud.staged[unit]
        offset = 0
        for row, is_live in zip(rows, live, strict=True):
            for position in range(row.start, row.stop):
                value = staged[offset]
                assert value is not None
                if is_live:
                    layers = self.cloud.layers[0]
                    staged[offset] = layers.run(row.sequence, position, value, start=s.start, stop=s.stop)
                offset += 1
        return UnitEnded()

    def send_up(self, effect: SendPiece) -> None:
        """Send a piece of a unit to the cloud, in frames."""
        staged = self.edge.staged[(effect.lane, effect.unit)]
        rows = effect.rows
        for start in range(effect.row_start, effect.row_stop, self.config.frame_rows):
            stop = min(start + self.config.frame_rows, effect.row_stop)
            frame = FrameArrived(effect.lane, effect.unit, start, stop, effect.num_rows, self.now_us, rows=rows)
            self.streams["up_p" if effect.lane is Lane.PREFILL else "up_d"].append((frame, staged[start:stop]))
            rows = None
        if effect.row_stop == effect.num_rows:
            del self.edge.staged[(effect.lane, effect.unit)]

    def send_down(self, effect: SendResult) -> None:
        """Send a result to the edge, in frames."""
        staged = self.cloud.staged.pop((effect.lane, effect.unit))
        offset = 0
        for row, is_live in zip(effect.rows, effect.live, strict=True):
            if not is_live:
                staged[offset : offset + row.num_tokens] = [0] * row.num_tokens
            offset += row.num_tokens
        for start in range(0, len(staged), self.config.frame_rows):
            stop = min(start + self.config.frame_rows, len(staged))
            frame = FrameArrived(effect.lane, effect.unit, start, stop, len(staged), self.now_us)
            self.streams[_down(effect.lane)].append((frame, staged[start:stop]))


def _down(lane: Lane) -> str:
    return "down_p" if lane is Lane.PREFILL else "down_d"
