"""Nouns that an engine reports, the same for edge and cloud: what it is, freed, failed at and did.

A function `x_message` makes the message of a noun, `x_of` the noun of a message. Does not know streams.
"""

from edgeweave.interleave.nouns import (
    Attached,
    Bubble,
    BubbleCause,
    DType,
    ErrorCode,
    Fingerprint,
    KvCapacity,
    Released,
    Rider,
    Stage,
    Timeline,
    UnitFailed,
    UnitRan,
)
from edgeweave.v1 import common_pb2 as pb
from edgeweave.wire.fields import chosen_field, enum_field, required_field
from edgeweave.wire.tasks import segment_message, segment_of


def attached_message(attached: Attached) -> pb.Attached:
    """Return the message of `attached`."""
    return pb.Attached(
        fingerprint=_fingerprint_message(attached.fingerprint),
        kv=pb.KvCapacity(block_tokens=attached.kv.block_tokens, num_blocks=attached.kv.num_blocks),
        staging_bytes=attached.staging_bytes,
        clock_us=attached.clock_us,
        body=segment_message(attached.body),
        token_bytes=attached.token_bytes,
        vocab_size=attached.vocab_size,
        max_positions=attached.max_positions,
    )


def attached_of(message: pb.Attached) -> Attached:
    """Return what an engine says of itself; ProtocolError if a part is missing."""
    kv = required_field(message, "kv")
    return Attached(
        fingerprint=_fingerprint_of(required_field(message, "fingerprint")),
        kv=KvCapacity(kv.block_tokens, kv.num_blocks),
        staging_bytes=message.staging_bytes,
        clock_us=message.clock_us,
        body=segment_of(required_field(message, "body")),
        token_bytes=message.token_bytes,
        vocab_size=message.vocab_size if message.HasField("vocab_size") else None,
        max_positions=message.max_positions if message.HasField("max_positions") else None,
    )


def _fingerprint_message(fingerprint: Fingerprint) -> pb.Fingerprint:
    return pb.Fingerprint(
        model=fingerprint.model,
        weights=fingerprint.weights,
        head_layers=fingerprint.head_layers,
        tail_layers=fingerprint.tail_layers,
        dtype=pb.DType.ValueType(fingerprint.dtype),
        protocol=fingerprint.protocol,
    )


def _fingerprint_of(message: pb.Fingerprint) -> Fingerprint:
    return Fingerprint(
        model=message.model,
        weights=message.weights,
        head_layers=message.head_layers,
        tail_layers=message.tail_layers,
        dtype=enum_field(message, "dtype", kind=DType),
        protocol=message.protocol,
    )


def unit_failed_message(failed: UnitFailed) -> pb.UnitFailed:
    """Return the message of `failed`."""
    message = pb.UnitFailed(
        sequences=failed.sequences,
        code=pb.ErrorCode.ValueType(failed.code),
        stage=pb.Stage.ValueType(failed.stage),
    )
    _name_unit(message, chunk=failed.chunk, step=failed.step)
    return message


def unit_failed_of(message: pb.UnitFailed) -> UnitFailed:
    """Return the failure in `message`; ProtocolError if it names no unit, or no known code or stage."""
    chunk, step = _unit_of(message)
    code = enum_field(message, "code", kind=ErrorCode)
    stage = enum_field(message, "stage", kind=Stage)
    return UnitFailed(sequences=tuple(message.sequences), code=code, stage=stage, chunk=chunk, step=step)


def timeline_message(timeline: Timeline) -> pb.Timeline:
    """Return the message of `timeline`."""
    return pb.Timeline(
        ran=map(_unit_ran_message, timeline.ran),
        bubbles=map(_bubble_message, timeline.bubbles),
        idle_us=timeline.idle_us,
        clock_us=timeline.clock_us,
        received_bytes=timeline.received_bytes,
        sent_bytes=timeline.sent_bytes,
        inside_us=timeline.inside_us,
    )


def timeline_of(message: pb.Timeline) -> Timeline:
    """Return the timeline in `message`; ProtocolError if a unit, stage or cause cannot be read."""
    return Timeline(
        ran=tuple(map(_unit_ran_of, message.ran)),
        bubbles=tuple(map(_bubble_of, message.bubbles)),
        idle_us=message.idle_us,
        clock_us=message.clock_us,
        received_bytes=message.received_bytes,
        sent_bytes=message.sent_bytes,
        inside_us=message.inside_us,
    )


def _unit_ran_message(ran: UnitRan) -> pb.UnitRan:
    message = pb.UnitRan(
        start=ran.start,
        stop=ran.stop,
        stage=pb.Stage.ValueType(ran.stage),
        begin_us=ran.begin_us,
        end_us=ran.end_us,
        prefill_ready=ran.prefill_ready,
        decode_ready=ran.decode_ready,
        num_rows=ran.num_rows,
        num_tokens=ran.num_tokens,
        plan=ran.plan,
        num_skipped=ran.num_skipped,
        tail_ready=ran.tail_ready,
        decode_due_us=ran.decode_due_us,
        prefill_run_us=ran.prefill_run_us,
        decode_rows=ran.decode_rows,
        ready_us=ran.ready_us,
        next_step=ran.next_step,
        tail_us=ran.tail_us,
        sampling_us=ran.sampling_us,
        rider=_rider_message(ran.rider) if ran.rider is not None else None,
        ride_layers=ran.ride_layers,
        step_layers=ran.step_layers,
    )
    _name_unit(message, chunk=ran.chunk, step=ran.step)
    return message


def _unit_ran_of(message: pb.UnitRan) -> UnitRan:
    chunk, step = _unit_of(message)
    return UnitRan(
        stage=enum_field(message, "stage", kind=Stage),
        start=message.start,
        stop=message.stop,
        begin_us=message.begin_us,
        end_us=message.end_us,
        prefill_ready=message.prefill_ready,
        decode_ready=message.decode_ready,
        num_rows=message.num_rows,
        num_tokens=message.num_tokens,
        plan=message.plan,
        chunk=chunk,
        step=step,
        num_skipped=message.num_skipped,
        tail_ready=message.tail_ready,
        decode_due_us=message.decode_due_us if message.HasField("decode_due_us") else None,
        prefill_run_us=message.prefill_run_us,
        decode_rows=message.decode_rows,
        ready_us=message.ready_us if message.HasField("ready_us") else None,
        next_step=message.next_step if message.HasField("next_step") else None,
        tail_us=message.tail_us,
        sampling_us=message.sampling_us,
        rider=_rider_of(message.rider) if message.HasField("rider") else None,
        ride_layers=message.ride_layers,
        step_layers=message.step_layers,
    )


def _rider_message(rider: Rider) -> pb.Rider:
    return pb.Rider(step=rider.step, num_rows=rider.num_rows, num_tokens=rider.num_tokens, ready_us=rider.ready_us)


def _rider_of(message: pb.Rider) -> Rider:
    return Rider(
        step=message.step if message.HasField("step") else None,
        num_rows=message.num_rows,
        num_tokens=message.num_tokens,
        ready_us=message.ready_us if message.HasField("ready_us") else None,
    )


def _name_unit(message: pb.UnitRan | pb.UnitFailed, *, chunk: int | None, step: int | None) -> None:
    if chunk is not None:
        message.chunk = chunk
    if step is not None:
        message.step = step


def _unit_of(message: pb.UnitRan | pb.UnitFailed) -> tuple[int | None, int | None]:
    """Return (chunk, step), one of which is None."""
    if chosen_field(message, "unit") == "chunk":
        return message.chunk, None
    return None, message.step


def _bubble_message(bubble: Bubble) -> pb.Bubble:
    return pb.Bubble(begin_us=bubble.begin_us, end_us=bubble.end_us, cause=pb.BubbleCause.ValueType(bubble.cause))


def _bubble_of(message: pb.Bubble) -> Bubble:
    return Bubble(message.begin_us, message.end_us, enum_field(message, "cause", kind=BubbleCause))


def released_message(released: Released) -> pb.Released:
    """Return the message of `released`."""
    return pb.Released(sequences=released.sequences)


def released_of(message: pb.Released) -> Released:
    """Return what is free by `message`."""
    return Released(tuple(message.sequences))
