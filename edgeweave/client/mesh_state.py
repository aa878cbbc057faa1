"""The state of the mesh, as the scheduler tells it.

Knows the values and their message. Does not know how they come about.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from edgeweave.interleave.nouns import BubbleCause, Plan, Stage
from edgeweave.interleave.recent_times import Quantiles
from edgeweave.interleave.request_totals import RequestEnd
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave.wire.fields import enum_field
from edgeweave.wire.tasks import plan_of


class SessionState(IntEnum):
    """State of the session between scheduler and engines."""

    DOWN = 1
    CONNECTING = 2
    READY = 3
    DRAINING = 4


@dataclass(frozen=True, slots=True)
class UnitSum:
    """Units of one stage and one number of rows: how many ran, and their time."""

    num_units: int
    total_us: int


@dataclass(frozen=True, slots=True)
class EngineState:
    """Sums of one engine since the start of its session; `units` by stage and number of rows.

    `clock_us` is the engine's clock at its last report.
    """

    busy_us: int
    bubbles_us: Mapping[BubbleCause, int]
    idle_us: int
    num_units: int
    num_skipped_rows: int
    num_blocks: int
    num_free_blocks: int
    received_bytes: int
    sent_bytes: int
    units: Mapping[tuple[Stage, int], UnitSum] = field(default_factory=dict)
    clock_us: int = 0

    @property
    def reserved_share(self) -> float | None:
        """Share of the KV blocks that is reserved; None where there are no blocks."""
        return 1.0 - self.num_free_blocks / self.num_blocks if self.num_blocks else None


@dataclass(frozen=True, slots=True)
class MeshState:
    """The session, its plan, its engines and its requests.

    `reason` says why the last session ended or none can begin, None while all is well. `plan` and the engines are
    None where there are none. `max_seq_len` is the most tokens of prompt and output together, None while not known.
    `clock_us` is the scheduler's clock. Quantiles are those of the last minute, None where nothing happened in it.
    """

    state: SessionState
    session: int
    reason: str | None
    plan: Plan | None
    edge: EngineState | None
    cloud: EngineState | None
    num_waiting: int
    num_running: int
    num_releasing: int
    num_chunks: int
    num_preemptions: int
    num_chunks_done: int
    num_steps_done: int
    num_departures: int
    num_output_tokens: int
    rtt_us: int
    prefill_bytes_per_s: int
    outside_us: int
    hidden_share: float
    max_seq_len: int | None
    clock_us: int
    num_decoding: int
    num_prefill_tokens: int
    steps_us: int
    queue_time: Quantiles | None
    time_to_first_token: Quantiles | None
    time_per_token: Quantiles | None
    ends: Mapping[RequestEnd, int]


def mesh_state_of(response: pb.WatchMeshResponse) -> MeshState:
    """Return the state in `response`; ProtocolError if an enum of it is not known here."""
    return MeshState(
        state=enum_field(response, "state", kind=SessionState),
        session=response.session,
        reason=response.reason or None,
        plan=plan_of(response.plan) if response.HasField("plan") else None,
        edge=_engine_state_of(response.edge) if response.HasField("edge") else None,
        cloud=_engine_state_of(response.cloud) if response.HasField("cloud") else None,
        num_waiting=response.num_waiting,
        num_running=response.num_running,
        num_releasing=response.num_releasing,
        num_chunks=response.num_chunks,
        num_preemptions=response.num_preemptions,
        num_chunks_done=response.num_chunks_done,
        num_steps_done=response.num_steps_done,
        num_departures=response.num_departures,
        num_output_tokens=response.num_output_tokens,
        rtt_us=response.rtt_us,
        prefill_bytes_per_s=response.prefill_bytes_per_s,
        outside_us=response.outside_us,
        hidden_share=response.hidden_share,
        max_seq_len=response.max_seq_len or None,
        clock_us=response.clock_us,
        num_decoding=response.num_decoding,
        num_prefill_tokens=response.num_prefill_tokens,
        steps_us=response.steps_us,
        queue_time=_quantiles_of(response.queue_time),
        time_to_first_token=_quantiles_of(response.time_to_first_token),
        time_per_token=_quantiles_of(response.time_per_token),
        ends={enum_field(sum_, "end", kind=RequestEnd): sum_.num_requests for sum_ in response.ends},
    )


def _engine_state_of(message: pb.EngineState) -> EngineState:
    return EngineState(
        busy_us=message.busy_us,
        bubbles_us={enum_field(sum_, "cause", kind=BubbleCause): sum_.total_us for sum_ in message.bubbles},
        idle_us=message.idle_us,
        num_units=message.num_units,
        num_skipped_rows=message.num_skipped_rows,
        num_blocks=message.num_blocks,
        num_free_blocks=message.num_free_blocks,
        received_bytes=message.received_bytes,
        sent_bytes=message.sent_bytes,
        units={
            (enum_field(sum_, "stage", kind=Stage), sum_.num_rows): UnitSum(sum_.num_units, sum_.total_us)
            for sum_ in message.units
        },
        clock_us=message.clock_us,
    )


def _quantiles_of(message: pb.Quantiles) -> Quantiles | None:
    """Return the quantiles; `None` where nothing was counted, which an absent message says too."""
    if not message.num_times:
        return None
    return Quantiles(message.num_times, message.p50_us, message.p90_us, message.p99_us)
