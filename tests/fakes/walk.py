"""Walks every state that a small mesh can reach, whatever order streams deliver in and whenever a client leaves.

Depth first from one start; a state that was seen is not entered again. Time stands still, so that it tells no two
states apart. What must hold in each state and at each end is checked on the way.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.nouns import Chunk, PlanKind
from edgeweave.interleave.replay import Replay
from edgeweave.interleave.requests import Attempt
from edgeweave.interleave.scheduler_events import Cancel
from edgeweave.interleave.totals import SessionTotals
from fakes.mesh import NUM_LAYERS, Config, Mesh
from fakes.shells import CloudShell, EdgeShell
from fakes.symbolic import generate
from fakes.values import clone, mark

PARTS = ("scheduler", "edge", "cloud")
"""What a mesh is made of besides streams; a move touches one of them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the walk. `may_leave`: its client may go away, at any point."""

    prompt: tuple[int, ...]
    max_tokens: int
    may_leave: bool = True


@dataclass(slots=True)
class Place:
    """A state of the walk: the mesh, and the replay of what its engines did on the way there."""

    mesh: Mesh
    replay: Replay


@dataclass(slots=True)
class Walk:
    """One small case. `max_states` bounds the walk; `is_complete` says whether it saw all there is."""

    config: Config
    asked: dict[str, Asked]
    max_states: int | None = None
    num_states: int = 0
    num_moves: int = 0
    num_ends: int = 0
    num_preemptions: int = 0
    is_complete: bool = False
    left_in: set[str] = field(default_factory=set)
    _seen: set[int] = field(default_factory=set)
    _stack: list[tuple[Place, dict[str, int]]] = field(default_factory=list)
    _expected: dict[str, list[int]] = field(default_factory=dict)

    def run(self) -> None:
        """Walk until nothing is new or the bound is reached."""
        self._enter(self._start(), {})
        while self._stack:
            if self.max_states is not None and self.num_states >= self.max_states:
                return
            place, marks = self._stack.pop()
            for move in self._moves(place.mesh):
                left = [part for part in PARTS if part != touched_by(move)]
                after = clone(place, shared=[getattr(place.mesh, part) for part in left])
                self._make(after, move)
                self._enter(after, {part: marks[part] for part in left})
        self.is_complete = True

    def _start(self) -> Place:
        mesh = Mesh(self.config)
        for name, asked in self.asked.items():
            self._expected[name] = generate(asked.prompt, num_layers=NUM_LAYERS, max_tokens=asked.max_tokens)
            mesh.queue(name, asked.prompt, max_tokens=asked.max_tokens)
        mesh.poll_scheduler()
        replay = Replay(holds_body=self.config.centralized)
        replay.remember(mesh.scheduler.plan)
        return Place(mesh, replay)

    def _moves(self, mesh: Mesh) -> list[str]:
        may_leave = [f"leave {name}" for name in mesh.scheduler.requests if self.asked[name].may_leave]
        return mesh.moves() + may_leave

    def _make(self, place: Place, move: str) -> None:
        self.num_moves += 1
        mesh = place.mesh
        if move.startswith("leave "):
            name = move.removeprefix("leave ")
            self.left_in.add(state_of(mesh, name))
            mesh.tell(Cancel(name))
        else:
            mesh.move(move)
        if touched_by(move) == "scheduler":
            mesh.session.totals = SessionTotals()
        for name, shell in mesh.shells:
            if name == touched_by(move):
                self._take_report(place, shell)

    def _take_report(self, place: Place, shell: EdgeShell | CloudShell) -> None:
        """Check at once what an engine did, so that how a state was reached does not tell states apart."""
        ran = shell.core.take_timeline(now_us=place.mesh.now_us).ran
        shell.core.num_skipped = 0
        for unit in ran:
            place.replay.observe(unit)
            assert not unit.num_skipped or self._was_disturbed(place.mesh), f"{unit} skipped rows for no reason"
        assert place.replay.num_departures == 0, "an engine decided by other rules"

    def _was_disturbed(self, mesh: Mesh) -> bool:
        has_left = len(mesh.scheduler.requests) + len(mesh.finished) < len(self.asked)
        return has_left or mesh.scheduler.num_preemptions > 0

    def _enter(self, place: Place, marks: dict[str, int]) -> None:
        """Check a state, and keep it if it is new. `marks` are those of parts that are as they were."""
        mesh = place.mesh
        marks |= {part: hash(mark(getattr(mesh, part))) for part in PARTS if part not in marks}
        seen = hash((*(marks[part] for part in PARTS), mark(mesh.streams), mark(mesh.emitted), mark(mesh.finished)))
        if seen in self._seen:
            return
        self._seen.add(seen)
        self.num_states += 1
        self.num_preemptions = max(self.num_preemptions, mesh.scheduler.num_preemptions)
        self._check(mesh)
        if not mesh.moves():
            self.num_ends += 1
            self._check_end(mesh)
        self._stack.append((place, marks))

    # ---- what holds in every state

    def _check(self, mesh: Mesh) -> None:
        assert not mesh.ended_sessions, mesh.ended_sessions
        assert not mesh.refused, mesh.refused
        for name, output in mesh.emitted.items():
            assert output == self._expected[name][: len(output)], f"{name}: {output}"
        check_blocks(mesh)
        check_in_flight(mesh)

    def _check_end(self, mesh: Mesh) -> None:
        for name in mesh.finished:
            assert mesh.emitted[name] == self._expected[name], f"{name} ended early"
        check_empty(mesh)


def touched_by(move: str) -> str:
    """Return the part of a mesh that a move may change."""
    if move in ("to_edge", "down_p", "down_d", "end_edge"):
        return "edge"
    return "cloud" if move in ("to_cloud", "up_p", "up_d", "end_cloud") else "scheduler"


def state_of(mesh: Mesh, request_id: str) -> str:
    """Return the state of the sequence that serves a request, or "waiting"."""
    attempts = [s for s in mesh.session.sequences.values() if s.request.request_id == request_id]
    live = [s.state for s in attempts if s.state is not Attempt.RELEASING]
    return live[0].value if live else "waiting"


def check_blocks(mesh: Mesh) -> None:
    """No account is overdrawn, and no engine holds KV that is not reserved for it."""
    for (side, account), (_, shell) in zip(mesh.session.accounts.sides.items(), mesh.shells, strict=False):
        assert 0 <= account.num_free <= account.capacity.num_blocks, side
        assert account.num_free + sum(account.reserved.values()) == account.capacity.num_blocks, side
        for part in shell.layers:
            for sequence, layers in part.kv.items():
                used = account.capacity.blocks_for(max(map(len, layers), default=0))
                assert used <= account.reserved.get(sequence, 0), f"{side} sequence {sequence} uses {used} blocks"


def check_in_flight(mesh: Mesh) -> None:
    """No more chunks or steps than the plan allows are in flight, whoever counts; that bounds what waits for a task."""
    plan, edge, cloud = mesh.scheduler.plan, mesh.edge.core, mesh.cloud.core
    assert len(mesh.session.chunks) <= plan.max_prefills
    assert len(edge.steps.away) <= plan.max_steps
    assert len(cloud.steps.open) <= plan.max_steps
    announced = {task.chunk for task in mesh.streams["to_cloud"] if isinstance(task, Chunk)}
    assert set(cloud.chunks.early) <= announced, "frames are held for a chunk that will not come"
    if plan.kind is PlanKind.SERIAL:
        assert edge.chunks.is_any_away() + len(edge.steps.away) <= 1, "two units of a serial mesh are away"


def check_empty(mesh: Mesh) -> None:
    """Nothing of any sequence is left anywhere, and every account is full."""
    assert mesh.scheduler.is_idle
    for name, shell in mesh.shells:
        assert shell.core.is_empty, f"the {name} core is not empty"
        assert not shell.staged, f"the {name} engine keeps {list(shell.staged)}"
        assert not any(layers.kv for layers in shell.layers), f"the {name} engine keeps KV"
    for side in mesh.session.accounts.sides.values():
        assert side.num_free == side.capacity.num_blocks
