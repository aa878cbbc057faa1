"""What the scheduler's core is told besides requests, and what it asks its shell to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import (
    Attached,
    Chunk,
    ChunkDone,
    ExtendSequence,
    FinishReason,
    LanesReady,
    OpenSequence,
    Plan,
    Released,
    ReleaseSequences,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.interleave.plan_change import PlanChange
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.requests import Request


@dataclass(frozen=True, slots=True)
class Connected:
    """A session serves: what both sides hold. `cloud` and `lanes` are absent where the edge holds all layers."""

    session: int
    edge: Attached
    cloud: Attached | None
    lanes: LanesReady | None


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The session ended, or none can begin."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """The client of a request went away."""

    request_id: str


@dataclass(frozen=True, slots=True)
class StopAdmission:
    """Open requests end and no new ones begin, until the next session."""

    reason: str


@dataclass(frozen=True, slots=True)
class FromEngine:
    """A message of an engine's task stream."""

    side: Side
    message: ChunkDone | StepDone | Released | UnitFailed | Timeline


SchedulerEvent = Request | Cancel | PlanRequest | Connected | Disconnected | StopAdmission | FromEngine


@dataclass(frozen=True, slots=True)
class ToEngine:
    """Send a task to one side."""

    side: Side
    task: OpenSequence | ExtendSequence | Chunk | ReleaseSequences | Plan


@dataclass(frozen=True, slots=True)
class Emit:
    """Give the client one token; with `finish`, its last."""

    request_id: str
    index: int
    token_id: int
    finish: FinishReason | None


@dataclass(frozen=True, slots=True)
class Refuse:
    """End a request with an error."""

    request_id: str
    error: EdgeweaveError


@dataclass(frozen=True, slots=True)
class EndSession:
    """The session cannot go on; its streams must be closed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Replanned:
    """The plan follows what was measured; the engines are told as well. For whoever watches."""

    change: PlanChange


SchedulerEffect = ToEngine | Emit | Refuse | EndSession | Replanned


class Watcher(Protocol):
    """Sees what the core is told, and what it answers, before that is carried out."""

    def __call__(self, event: SchedulerEvent | None, effects: Sequence[SchedulerEffect], /, *, now_us: int) -> None:
        """The core took `event`, or looked at the time, and answered with `effects`."""
