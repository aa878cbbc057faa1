"""Nouns that tell an engine what to do, the same for edge and cloud: chunks, releases, plans.

A function `x_message` makes the message of a noun, `x_of` the noun of a message. Does not know streams.
"""

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import Chunk, Plan, PlanKind, ReleaseSequences, Row, Segment
from edgeweave.v1 import common_pb2 as pb
from edgeweave.wire.fields import enum_field


def row_message(row: Row) -> pb.Row:
    """Return the message of `row`."""
    return pb.Row(sequence=row.sequence, start=row.start, stop=row.stop)


def row_of(message: pb.Row) -> Row:
    """Return the row in `message`; ProtocolError if it is empty."""
    if message.stop <= message.start:
        raise ProtocolError(
            f"Row of sequence {message.sequence} is empty: [{message.start}, {message.stop}); "
            "the sender cut a chunk wrongly"
        )
    return Row(message.sequence, message.start, message.stop)


def segment_message(segment: Segment) -> pb.SegmentTask:
    """Return the message of `segment`."""
    return pb.SegmentTask(start=segment.start, stop=segment.stop)


def segment_of(message: pb.SegmentTask) -> Segment:
    """Return the segment in `message`; it may be empty (an edge with all layers has no body)."""
    if message.stop < message.start:
        raise ProtocolError(f"SegmentTask [{message.start}, {message.stop}) runs backwards; the sender is wrong")
    return Segment(message.start, message.stop)


def chunk_message(chunk: Chunk) -> pb.ChunkTask:
    """Return the message of `chunk`."""
    return pb.ChunkTask(
        chunk=chunk.chunk,
        rows=map(row_message, chunk.rows),
        segments=map(segment_message, chunk.segments),
        plan=chunk.plan,
        deadline_ms=chunk.deadline_ms,
    )


def chunk_of(message: pb.ChunkTask) -> Chunk:
    """Return the chunk in `message`."""
    return Chunk(
        chunk=message.chunk,
        rows=tuple(map(row_of, message.rows)),
        segments=tuple(map(segment_of, message.segments)),
        plan=message.plan,
        deadline_ms=message.deadline_ms,
    )


def release_message(release: ReleaseSequences) -> pb.ReleaseSequences:
    """Return the message of `release`."""
    return pb.ReleaseSequences(sequences=release.sequences)


def release_of(message: pb.ReleaseSequences) -> ReleaseSequences:
    """Return the release in `message`."""
    return ReleaseSequences(tuple(message.sequences))


def plan_message(plan: Plan) -> pb.Plan:
    """Return the message of `plan`."""
    return pb.Plan(
        plan=plan.plan,
        kind=pb.PlanKind.ValueType(plan.kind),
        max_prefills=plan.max_prefills,
        max_steps=plan.max_steps,
        max_batch_size=plan.max_batch_size,
        next_head_first=plan.next_head_first,
        min_segment_us=plan.min_segment_us,
        decode_return_us=plan.decode_return_us,
        max_grace_us=plan.max_grace_us,
        may_fuse=plan.may_fuse,
        fill_to_rows=plan.fill_to_rows,
        fill_row_us=plan.fill_row_us,
        fuse_after_layers=plan.fuse_after_layers,
    )


def plan_of(message: pb.Plan) -> Plan:
    """Return the plan in `message`; ProtocolError if its kind is unspecified or not known here."""
    return Plan(
        plan=message.plan,
        kind=enum_field(message, "kind", kind=PlanKind),
        max_prefills=message.max_prefills,
        max_steps=message.max_steps,
        max_batch_size=message.max_batch_size,
        next_head_first=message.next_head_first,
        min_segment_us=message.min_segment_us,
        decode_return_us=message.decode_return_us,
        max_grace_us=message.max_grace_us,
        may_fuse=message.may_fuse,
        fill_to_rows=message.fill_to_rows,
        fill_row_us=message.fill_row_us,
        fuse_after_layers=message.fuse_after_layers,
    )
