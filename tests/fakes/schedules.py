"""Random schedules of a whole mesh: any delivery order, any abort, preemption, plan change, failure and session loss.

`run_schedule` plays one seed to its end and checks what must hold at the end of every schedule. The random choices
come from the seed alone, so a failing seed replays.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from edgeweave.errors import SessionLostError, UnitFailedError
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import ErrorCode, Fuse, KvCapacity, PlanKind
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.requests import Attempt
from edgeweave.interleave.scheduler_events import Cancel
from fakes.account import bubbles_by_cause, check_account
from fakes.mesh import NUM_LAYERS, Config, Mesh
from fakes.symbolic import generate

PLANS = (
    PlanRequest(PlanKind.SERIAL),
    PlanRequest(PlanKind.ONE_P_ONE_D, num_segments=2),
    PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=3),
    PlanRequest(PlanKind.TWO_P_ONE_D, max_prefills=3, max_steps=2, num_segments=1),
    PlanRequest(PlanKind.ADAPTIVE),
)


FUSING = Config(plan=PlanRequest(PlanKind.ADAPTIVE, fuse=Fuse.ALWAYS))
"""The base of schedules in which rows ride in prefill under every plan that can; some chunks more let them overtake."""
MORE_PREFILLS = 3


@dataclass(frozen=True, slots=True)
class Faults:
    """What may happen besides work: the chance of each at every move."""

    abort: float = 0.0
    replan: float = 0.0
    lose: float = 0.0
    fail: float = 0.0
    late: float = 0.0


REPORT = 0.05
"""Chance of a report of both engines at every move."""
MAX_ASKED = 6
CALM = Faults()
ROUGH = Faults(abort=0.01, replan=0.02, lose=0.002, fail=0.001, late=0.02)


def random_config(rng: random.Random, *, base: Config) -> Config:
    """Return a mesh of random shape; a third of them are short of KV blocks, so that they preempt.

    Rows ride in prefill if they do in `base`.
    """
    tight = rng.random() < 1 / 3
    limits = Limits(
        max_prefill_batch_size=rng.choice((1, 2, 4)),
        max_prefill_tokens=rng.choice((4, 16)),
        max_seq_len=16,
        max_batch_size=rng.choice((1, 2, 4)),
        chunk_tokens=rng.choice((1, 3, 16)),
        long_prompt_tokens=rng.choice((6, 2048)),
    )
    edge_kv = _tight_kv(rng) if tight else KvCapacity(4, 64)
    cloud_kv = _tight_kv(rng) if tight else KvCapacity(2, 64)
    return replace(
        base,
        limits=limits,
        plan=any_plan(rng, fuse=base.plan.fuse),
        edge_kv=edge_kv,
        cloud_kv=cloud_kv,
        piece_tokens=rng.choice((1, 3, 8)),
        frame_rows=rng.choice((1, 2, 8)),
        centralized=rng.random() < 0.1,
        max_grace_us=rng.choice((0, 50)),
    )


def any_plan(rng: random.Random, *, fuse: Fuse) -> PlanRequest:
    """Return one of the plans, with rows that ride as `fuse` says where the plan can."""
    plan = rng.choice(PLANS)
    if fuse is not Fuse.ALWAYS or plan.kind is PlanKind.SERIAL:
        return plan
    return replace(plan, fuse=fuse, max_prefills=MORE_PREFILLS if plan.max_prefills is None else plan.max_prefills)


def _tight_kv(rng: random.Random) -> KvCapacity:
    """Room for the longest sequence and little more."""
    block_tokens = rng.choice((1, 2, 4))
    return KvCapacity(block_tokens, 16 // block_tokens + rng.randint(0, 3))


class Schedule:
    """One seed: a mesh, its requests, and the moves that chance picks."""

    def __init__(self, seed: int, *, faults: Faults, base: Config) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - schedules, not secrets
        self.fuse = base.plan.fuse
        self.mesh = Mesh(random_config(self.rng, base=base))
        self.asked: dict[str, tuple[tuple[int, ...], int]] = {}
        self.aborted: set[str] = set()
        self.abort_states: Counter[str] = Counter()
        self.disturbances: tuple[tuple[float, Callable[[], None]], ...] = (
            (faults.abort, self.abort_any),
            (faults.replan, self.replan),
            (faults.late, self.ask_late),
            (faults.fail, self.fail),
            (faults.lose, self.lose),
            (REPORT, self.mesh.report),
        )

    def play(self) -> None:
        """Play the schedule to its end."""
        for _ in range(self.rng.randint(1, 4)):
            self.ask()
        for _ in range(20_000):
            moves = self.mesh.moves()
            if not moves:
                break
            self.mesh.now_us += self.rng.randint(0, 20)
            self.mesh.move(self.rng.choice(moves))
            self.disturb()
        else:
            raise AssertionError("the mesh did not come to rest")
        self.mesh.report()
        self.mesh.run(self.rng.choice)

    def ask(self) -> None:
        """Submit one more request."""
        rng = self.rng
        name = f"r{len(self.asked)}"
        prompt = tuple(rng.randrange(1, 97) for _ in range(rng.randint(1, 9)))
        self.asked[name] = (prompt, rng.randint(1, 7))
        self.mesh.submit(name, prompt, max_tokens=self.asked[name][1])

    def disturb(self) -> None:
        """Let one of the faults happen, or none."""
        chance = self.rng.random()
        for weight, disturbance in self.disturbances:
            if chance < weight:
                disturbance()
                return
            chance -= weight

    def abort_any(self) -> None:
        """One of the clients goes away."""
        if self.mesh.scheduler.requests:
            self.abort(self.rng.choice(sorted(self.mesh.scheduler.requests)))

    def replan(self) -> None:
        """An operator sets a plan."""
        self.mesh.tell(any_plan(self.rng, fuse=self.fuse))

    def ask_late(self) -> None:
        """One more client comes."""
        if len(self.asked) < MAX_ASKED:
            self.ask()

    def fail(self) -> None:
        """The next unit that ends has failed."""
        self.mesh.fail_next = ErrorCode.COMPUTE

    def lose(self) -> None:
        """The session breaks; up to its last reports all time is accounted for."""
        for timelines in self.mesh.timelines.values():
            check_account(timelines, begin_us=self.mesh.connected_us)
        self.mesh.lose_session("the test cut it")

    def abort(self, name: str) -> None:
        """A client goes away; remember in which state its sequence was."""
        states = [s.state for s in self.mesh.session.sequences.values() if s.request.request_id == name]
        live = [state for state in states if state is not Attempt.RELEASING]
        self.abort_states[live[0].value if live else "waiting"] += 1
        self.aborted.add(name)
        self.mesh.tell(Cancel(name))

    def check(self) -> None:
        """Check what holds at the end of every schedule."""
        mesh = self.mesh
        assert not mesh.ended_sessions, mesh.ended_sessions
        for name, (prompt, max_tokens) in self.asked.items():
            expected = generate(prompt, num_layers=NUM_LAYERS, max_tokens=max_tokens)
            got = mesh.emitted[name]
            if name in mesh.finished:
                assert got == expected, f"{name}: {got} instead of {expected}"
            else:
                assert got == expected[: len(got)], f"{name}: {got} does not begin {expected}"
                is_told = isinstance(mesh.refused.get(name), SessionLostError | UnitFailedError)
                assert name in self.aborted or is_told, f"{name} has no end"
        self.check_empty()
        self.check_times()

    def check_times(self) -> None:
        """Busy + bubbles + idle of each engine is the time of the session, to the microsecond, in reports and sums."""
        mesh = self.mesh
        for side, totals in mesh.session.totals.engines.items():
            check_account(mesh.timelines[side], begin_us=mesh.connected_us)
            counted_us = totals.busy_us + sum(totals.bubbles_us.values()) + totals.idle_us
            assert counted_us == mesh.reported_us - mesh.connected_us, f"{side.value}: {totals}"
            assert totals.bubbles_us == bubbles_by_cause(mesh.timelines[side]), f"{side.value}: {totals}"

    def check_empty(self) -> None:
        """Nothing is left anywhere, and every account is full."""
        mesh = self.mesh
        assert mesh.scheduler.is_idle
        assert mesh.edge.core.is_empty
        assert mesh.cloud.core.is_empty
        assert not mesh.edge.staged
        assert not mesh.cloud.staged
        assert not any(layers.kv for _, shell in mesh.shells for layers in shell.layers)
        session = mesh.session
        for side in session.accounts.sides.values():
            assert side.num_free == side.capacity.num_blocks
        assert session.replay.num_departures == 0
        if not (self.aborted or mesh.scheduler.num_preemptions or mesh.refused):
            skips = [session.totals.engines[side].num_skipped_rows for side in Side]
            assert skips == [0, 0], "rows were skipped although nothing was released early"


def run_schedule(seed: int, *, faults: Faults, base: Config | None = None) -> Schedule:
    """Play one seed and check it."""
    schedule = Schedule(seed, faults=faults, base=base or Config())
    schedule.play()
    schedule.check()
    return schedule
