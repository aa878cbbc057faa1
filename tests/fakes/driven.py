"""A scheduler's core driven by hand: tell it one thing at a time, at a time that is said, and see what follows."""

from dataclasses import dataclass, field
from typing import TypeVar

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import (
    Attached,
    Chunk,
    ChunkDone,
    DType,
    Fingerprint,
    FinishReason,
    KvCapacity,
    LanesReady,
    PlanKind,
    Released,
    Sample,
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
    Emit,
    EndSession,
    FromEngine,
    Refuse,
    SchedulerEffect,
    SchedulerEvent,
    ToEngine,
)
from edgeweave.interleave.session import Session

T = TypeVar("T")
FINGERPRINT = Fingerprint(b"m", b"w", 1, 1, DType.FLOAT32, 1)
BODY = Segment(1, 7)
ROOMY = KvCapacity(4, 100)


@dataclass(slots=True)
class DrivenScheduler:
    """One core. `effects` are those of the last call."""

    limits: Limits = field(default_factory=lambda: Limits(max_seq_len=64, chunk_tokens=8))
    plan: PlanRequest = field(default_factory=lambda: PlanRequest(PlanKind.TWO_P_ONE_D))
    edge_kv: KvCapacity = ROOMY
    cloud_kv: KvCapacity | None = ROOMY
    rtt_us: int = 1_000
    max_grace_us: int = 0
    now_us: int = 0
    effects: list[SchedulerEffect] = field(default_factory=list)
    core: SchedulerCore = field(init=False)

    def __post_init__(self) -> None:
        """Make the core; it has no session yet."""
        self.core = SchedulerCore(self.limits, self.plan, self.max_grace_us)

    @property
    def session(self) -> Session:
        """The session that serves."""
        assert self.core.session is not None
        return self.core.session

    def connect(self, number: int = 1) -> "DrivenScheduler":
        """Begin a session; without a cloud the edge holds all layers."""
        body = BODY if self.cloud_kv is not None else Segment(8, 8)
        edge = Attached(FINGERPRINT, self.edge_kv, 1 << 20, 0, body, 4)
        cloud = Attached(FINGERPRINT, self.cloud_kv, 1 << 20, 0, body, 4) if self.cloud_kv is not None else None
        lanes = LanesReady(self.rtt_us, 1 << 20) if cloud is not None else None
        return self.tell(Connected(number, edge, cloud, lanes))

    def tell(self, event: SchedulerEvent) -> "DrivenScheduler":
        """Tell the core something."""
        self.effects = self.core.on(event, now_us=self.now_us)
        return self

    def poll(self, *, now_us: int) -> "DrivenScheduler":
        """Let time pass."""
        self.now_us = now_us
        self.effects = self.core.poll(now_us=now_us)
        return self

    def ask(
        self, name: str, num_prompt: int = 3, *, max_tokens: int = 8, deadline_us: int | None = None
    ) -> "DrivenScheduler":
        """Submit a request."""
        prompt = tuple(range(1, num_prompt + 1))
        return self.tell(Request(name, prompt, max_tokens, arrived_us=self.now_us, deadline_us=deadline_us))

    def said(self, side: Side, message: ChunkDone | StepDone | Released | UnitFailed | Timeline) -> "DrivenScheduler":
        """Hear from an engine."""
        return self.tell(FromEngine(side, message))

    def chunk_done(self, chunk: int, *samples: Sample) -> "DrivenScheduler":
        """Hear that a chunk is done."""
        return self.said(Side.EDGE, ChunkDone(chunk, samples, away_us=100))

    def step_done(self, step: int, *samples: Sample, turnaround_us: int = 0) -> "DrivenScheduler":
        """Hear that a step is done."""
        return self.said(Side.EDGE, StepDone(step, samples, 100, turnaround_us))

    def released(self, *sequences: int) -> "DrivenScheduler":
        """Hear from all sides that sequences are free."""
        for side in tuple(self.session.accounts.sides):
            self.said(side, Released(sequences))
        return self

    def decoding(self, *names: str, num_prompt: int = 3, max_tokens: int = 8) -> "DrivenScheduler":
        """Bring new requests one after another to where their first token is out; each has one chunk."""
        for name in names:
            self.ask(name, num_prompt, max_tokens=max_tokens)
            (chunk,) = self.tasks(Side.EDGE, Chunk)
            self.chunk_done(chunk.chunk, *(sample(row.sequence, 0) for row in chunk.rows))
        return self

    # ---- what followed

    def tasks(self, side: Side, kind: type[T]) -> list[T]:
        """Tasks of a kind that go to one side."""
        sent = [e.task for e in self.effects if isinstance(e, ToEngine) and e.side is side]
        return [task for task in sent if isinstance(task, kind)]

    @property
    def emits(self) -> list[tuple[str, int, int, FinishReason | None]]:
        """Tokens for clients: request, index, token and finish."""
        return [(e.request_id, e.index, e.token_id, e.finish) for e in self.effects if isinstance(e, Emit)]

    @property
    def refusals(self) -> dict[str, Exception]:
        """Errors for clients, by request."""
        return {e.request_id: e.error for e in self.effects if isinstance(e, Refuse)}

    @property
    def endings(self) -> list[str]:
        """Why the session must end."""
        return [e.reason for e in self.effects if isinstance(e, EndSession)]


def sample(sequence: int, index: int, token_id: int = 9, finish: FinishReason | None = None) -> Sample:
    """Return a sampled token."""
    return Sample(sequence, index, token_id, finish)
