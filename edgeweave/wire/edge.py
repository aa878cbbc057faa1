"""Nouns of the edge's task stream, both ways, and how tokens are drawn."""

from edgeweave.interleave.nouns import (
    GREEDY,
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
    Sample,
    Sampling,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.v1 import edge_pb2 as pb
from edgeweave.wire.attach import AttachEdge
from edgeweave.wire.fields import Kind, Kinds, optional_enum_field
from edgeweave.wire.reports import (
    attached_message,
    attached_of,
    released_message,
    released_of,
    timeline_message,
    timeline_of,
    unit_failed_message,
    unit_failed_of,
)
from edgeweave.wire.tasks import (
    chunk_message,
    chunk_of,
    plan_message,
    plan_of,
    release_message,
    release_of,
)

EdgeTask = AttachEdge | OpenSequence | Chunk | ExtendSequence | ReleaseSequences | Plan
"""What the scheduler tells the edge."""

EdgeReport = Attached | LanesReady | ChunkDone | StepDone | Released | UnitFailed | Timeline
"""What the edge tells the scheduler."""


def edge_task_message(task: EdgeTask) -> pb.RunEdgeTasksRequest:
    """Return the stream message that tells the edge `task`."""
    return _TASKS.encode(task)


def edge_task_of(message: pb.RunEdgeTasksRequest) -> EdgeTask:
    """Return the task in `message`; ProtocolError if there is none, or a field cannot be read."""
    return _TASKS.decode(message)


def edge_report_message(report: EdgeReport) -> pb.RunEdgeTasksResponse:
    """Return the stream message that tells the scheduler `report`."""
    return _REPORTS.encode(report)


def edge_report_of(message: pb.RunEdgeTasksResponse) -> EdgeReport:
    """Return the report in `message`; ProtocolError if there is none, or a field cannot be read."""
    return _REPORTS.decode(message)


def sampling_message(sampling: Sampling) -> pb.Sampling:
    """Return the message of `sampling`; temperature and top_p become 32-bit floats."""
    return pb.Sampling(temperature=sampling.temperature, top_k=sampling.top_k, top_p=sampling.top_p, seed=sampling.seed)


def sampling_of(message: pb.Sampling) -> Sampling:
    """Return the sampling in `message`, with the 32-bit values that were sent.

    A top_p of 0 keeps all, as 1 does. Does not judge the values: whoever admits a request does.
    """
    return Sampling(
        temperature=message.temperature,
        top_k=message.top_k,
        top_p=message.top_p or 1.0,
        seed=message.seed,
    )


def attach_edge_message(attach: AttachEdge) -> pb.AttachEdge:
    """Return the message of `attach`."""
    return pb.AttachEdge(
        session=attach.session,
        cloud_target=attach.cloud_target or "",
        max_chunk_tokens=attach.max_chunk_tokens,
    )


def attach_edge_of(message: pb.AttachEdge) -> AttachEdge:
    """Return the attach in `message`."""
    return AttachEdge(
        session=message.session,
        cloud_target=message.cloud_target or None,
        max_chunk_tokens=message.max_chunk_tokens,
    )


def open_sequence_message(opened: OpenSequence) -> pb.OpenSequence:
    """Return the message of `opened`."""
    return pb.OpenSequence(
        sequence=opened.sequence,
        token_ids=opened.token_ids,
        num_prompt_tokens=opened.num_prompt_tokens,
        sampling=sampling_message(opened.sampling),
        stop_token_ids=sorted(opened.stop_token_ids),
        max_tokens=opened.max_tokens,
        token_limit=opened.token_limit,
    )


def open_sequence_of(message: pb.OpenSequence) -> OpenSequence:
    """Return the sequence in `message`; without sampling it is greedy."""
    return OpenSequence(
        sequence=message.sequence,
        token_ids=tuple(message.token_ids),
        num_prompt_tokens=message.num_prompt_tokens,
        sampling=sampling_of(message.sampling) if message.HasField("sampling") else GREEDY,
        stop_token_ids=frozenset(message.stop_token_ids),
        max_tokens=message.max_tokens,
        token_limit=message.token_limit,
    )


def extend_message(extend: ExtendSequence) -> pb.ExtendSequence:
    """Return the message of `extend`."""
    return pb.ExtendSequence(sequence=extend.sequence, token_limit=extend.token_limit)


def extend_of(message: pb.ExtendSequence) -> ExtendSequence:
    """Return the extension in `message`."""
    return ExtendSequence(message.sequence, message.token_limit)


def lanes_ready_message(ready: LanesReady) -> pb.LanesReady:
    """Return the message of `ready`."""
    return pb.LanesReady(rtt_us=ready.rtt_us, prefill_bytes_per_s=ready.prefill_bytes_per_s)


def lanes_ready_of(message: pb.LanesReady) -> LanesReady:
    """Return the measured lanes in `message`."""
    return LanesReady(message.rtt_us, message.prefill_bytes_per_s)


def chunk_done_message(done: ChunkDone) -> pb.ChunkDone:
    """Return the message of `done`."""
    return pb.ChunkDone(chunk=done.chunk, samples=map(_sample_message, done.samples), away_us=done.away_us)


def chunk_done_of(message: pb.ChunkDone) -> ChunkDone:
    """Return the answered chunk in `message`."""
    return ChunkDone(message.chunk, tuple(map(_sample_of, message.samples)), message.away_us)


def step_done_message(done: StepDone) -> pb.StepDone:
    """Return the message of `done`."""
    return pb.StepDone(
        step=done.step,
        samples=map(_sample_message, done.samples),
        away_us=done.away_us,
        turnaround_us=done.turnaround_us,
    )


def step_done_of(message: pb.StepDone) -> StepDone:
    """Return the answered step in `message`."""
    samples = tuple(map(_sample_of, message.samples))
    return StepDone(message.step, samples, message.away_us, message.turnaround_us)


def _sample_message(sample: Sample) -> pb.Sample:
    message = pb.Sample(sequence=sample.sequence, index=sample.index, token_id=sample.token_id)
    if sample.finish is not None:
        message.finish = pb.FinishReason.ValueType(sample.finish)
    return message


def _sample_of(message: pb.Sample) -> Sample:
    finish = optional_enum_field(message, "finish", kind=FinishReason)
    return Sample(message.sequence, message.index, message.token_id, finish)


_TASKS: Kinds[pb.RunEdgeTasksRequest, EdgeTask] = Kinds(
    pb.RunEdgeTasksRequest,
    Kind("attach", AttachEdge, attach_edge_message, attach_edge_of),
    Kind("open", OpenSequence, open_sequence_message, open_sequence_of),
    Kind("chunk", Chunk, chunk_message, chunk_of),
    Kind("extend", ExtendSequence, extend_message, extend_of),
    Kind("release", ReleaseSequences, release_message, release_of),
    Kind("plan", Plan, plan_message, plan_of),
)

_REPORTS: Kinds[pb.RunEdgeTasksResponse, EdgeReport] = Kinds(
    pb.RunEdgeTasksResponse,
    Kind("attached", Attached, attached_message, attached_of),
    Kind("lanes", LanesReady, lanes_ready_message, lanes_ready_of),
    Kind("chunk", ChunkDone, chunk_done_message, chunk_done_of),
    Kind("step", StepDone, step_done_message, step_done_of),
    Kind("released", Released, released_message, released_of),
    Kind("failed", UnitFailed, unit_failed_message, unit_failed_of),
    Kind("timeline", Timeline, timeline_message, timeline_of),
)
