"""Frames to bytes and back: one copy of the payload on the way out, none on the way in.

Knows that a frame is a valid protobuf message whose last field is its payload: the generated class reads and writes
the few small fields, the payload is joined or viewed. Any other order of fields is read too, by the generated parser
alone. Up is from edge to cloud (`CarryFramesRequest`), down is back (`CarryFramesResponse`).
"""

from typing import TypeVar

from google.protobuf.message import DecodeError

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import DType, ErrorCode, Lane, Row
from edgeweave.v1 import cloud_pb2 as pb
from edgeweave.v1 import common_pb2
from edgeweave.wire.checksum import crc32c
from edgeweave.wire.fields import enum_field, optional_enum_field
from edgeweave.wire.frames import Arrived, Frame, LaneOpen, Payload, UnitFailure
from edgeweave.wire.varint import last_bytes_field, length_prefix

_Message = pb.CarryFramesRequest | pb.CarryFramesResponse
_MessageT = TypeVar("_MessageT", pb.CarryFramesRequest, pb.CarryFramesResponse)
_PAYLOAD_FIELD = pb.CarryFramesRequest.PAYLOAD_FIELD_NUMBER


def encode_up(frame: Frame, *, checked: bool = True) -> bytes:
    """Return the bytes of a frame for the cloud; without `checked` its payload carries no checksum."""
    head = pb.CarryFramesRequest()
    _fill_head(head, frame, checked=checked)
    if frame.rows is not None:
        head.sequences.extend(row.sequence for row in frame.rows)
        head.starts.extend(row.start for row in frame.rows)
        if any(row.num_tokens != 1 for row in frame.rows):
            head.counts.extend(row.num_tokens for row in frame.rows)
    return _join(head, frame.payload)


def encode_down(frame: Frame, *, checked: bool = True) -> bytes:
    """Return the bytes of a frame for the edge; without `checked` its payload carries no checksum."""
    head = pb.CarryFramesResponse()
    _fill_head(head, frame, checked=checked)
    if frame.failure is not None:
        head.failure.sequences.extend(frame.failure.sequences)
        head.failure.code = common_pb2.ErrorCode.ValueType(frame.failure.code)
    return _join(head, frame.payload)


def decode_up(message: bytes, *, lane: Lane) -> Frame:
    """Return the frame in `message`; its payload is a view of it.

    Raises:
        ProtocolError: names `lane` and unit, and what is wrong with the frame.
    """
    head, payload = _split(pb.CarryFramesRequest, message, lane=lane)
    return _frame_of(head, payload, lane=lane, rows=_rows_of(head, lane=lane))


def decode_down(message: bytes, *, lane: Lane) -> Frame:
    """Return the frame in `message`; its payload is a view of it.

    Raises:
        ProtocolError: names `lane` and unit, and what is wrong with the frame.
    """
    head, payload = _split(pb.CarryFramesResponse, message, lane=lane)
    return _frame_of(head, payload, lane=lane, failure=_failure_of(head))


def _fill_head(head: _Message, frame: Frame, *, checked: bool) -> None:
    head.unit = frame.unit
    head.row_start, head.row_stop, head.num_rows = frame.row_start, frame.row_stop, frame.num_rows
    head.sent_us = frame.sent_us
    if frame.dtype is not None:
        head.dtype = common_pb2.DType.ValueType(frame.dtype)
    if frame.open is not None:
        head.open.session = frame.open.session
        head.open.lane = pb.Lane.ValueType(frame.open.lane)
    if frame.arrived is not None:
        head.arrived.unit = frame.arrived.unit
        head.arrived.bytes_per_s = frame.arrived.bytes_per_s
    if checked:
        head.crc32c = crc32c(frame.payload)


def _join(head: _Message, payload: Payload) -> bytes:
    if not payload:
        return head.SerializeToString()
    return b"".join((head.SerializeToString(), length_prefix(_PAYLOAD_FIELD, len(payload)), payload))


def _split(kind: type[_MessageT], message: bytes, *, lane: Lane) -> tuple[_MessageT, Payload]:
    """Return the small fields of `message`, and a view of its payload."""
    span = last_bytes_field(message, _PAYLOAD_FIELD)
    try:
        if span is None:
            head = kind.FromString(message)
            return head, memoryview(head.payload)
        head_stop, payload_start = span
        return kind.FromString(message[:head_stop]), memoryview(message)[payload_start:]
    except DecodeError:
        complaint = f"{len(message)} bytes on the {_name(lane)} lane are no {kind.DESCRIPTOR.name}"
        raise ProtocolError(f"{complaint}; the link or the peer is broken") from None


def _frame_of(
    head: _Message,
    payload: Payload,
    *,
    lane: Lane,
    rows: tuple[Row, ...] | None = None,
    failure: UnitFailure | None = None,
) -> Frame:
    frame = Frame(
        unit=head.unit,
        row_start=head.row_start,
        row_stop=head.row_stop,
        num_rows=head.num_rows,
        dtype=optional_enum_field(head, "dtype", kind=DType),
        sent_us=head.sent_us,
        payload=payload,
        rows=rows,
        failure=failure,
        open=_open_of(head),
        arrived=Arrived(head.arrived.unit, head.arrived.bytes_per_s) if head.HasField("arrived") else None,
    )
    if frame.open is None and frame.failure is None:
        _check_payload(frame, lane=lane)
    if head.crc32c and head.crc32c != crc32c(payload):
        raise _broken(head.unit, lane, "was damaged on the way: its CRC-32C differs")
    return frame


def _open_of(head: _Message) -> LaneOpen | None:
    if not head.HasField("open"):
        return None
    return LaneOpen(head.open.session, enum_field(head.open, "lane", kind=Lane))


def _check_payload(frame: Frame, *, lane: Lane) -> None:
    num_rows = frame.row_stop - frame.row_start
    if not 0 < num_rows <= frame.num_rows - frame.row_start:
        rows = f"[{frame.row_start}, {frame.row_stop}) of {frame.num_rows}"
        raise _broken(frame.unit, lane, f"carries the impossible rows {rows}")
    if not frame.payload or len(frame.payload) % num_rows:
        raise _broken(frame.unit, lane, f"carries {len(frame.payload)} bytes for {num_rows} rows")
    if frame.dtype is None:
        raise _broken(frame.unit, lane, "does not say its dtype")


def _rows_of(head: pb.CarryFramesRequest, *, lane: Lane) -> tuple[Row, ...] | None:
    if not head.sequences:
        return None
    counts = list(head.counts) or [1] * len(head.sequences)
    try:
        rows = tuple(
            Row(sequence, start, start + count)
            for sequence, start, count in zip(head.sequences, head.starts, counts, strict=True)
        )
    except ValueError:
        raise _broken(head.unit, lane, "names rows by lists of different lengths") from None
    if any(row.num_tokens == 0 for row in rows) or sum(row.num_tokens for row in rows) != head.num_rows:
        raise _broken(head.unit, lane, f"names rows that do not fill its {head.num_rows} tensor rows")
    return rows


def _failure_of(head: pb.CarryFramesResponse) -> UnitFailure | None:
    if not head.HasField("failure"):
        return None
    code = enum_field(head.failure, "code", kind=ErrorCode)
    return UnitFailure(tuple(head.failure.sequences), code)


def _broken(unit: int, lane: Lane, complaint: str) -> ProtocolError:
    return ProtocolError(f"frame of unit {unit} on the {_name(lane)} lane {complaint}; the session must end")


def _name(lane: Lane) -> str:
    return lane.name.lower()
