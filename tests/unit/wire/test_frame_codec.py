"""Frames are valid protobuf both ways, are never copied more than once, and damage is told as a ProtocolError."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from google_crc32c import value
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import DType, ErrorCode, Lane, Row
from edgeweave.v1 import cloud_pb2 as pb
from edgeweave.wire.frame_codec import decode_down, decode_up, encode_down, encode_up
from edgeweave.wire.frames import Arrived, Frame, LaneOpen, UnitFailure

T = TypeVar("T")
U64 = st.integers(0, 2**64 - 1)


@st.composite
def hidden_frames(draw: st.DrawFn) -> Frame:
    """Any frame that carries rows."""
    num_here = draw(st.integers(1, 5))
    row_start = draw(st.integers(0, 2**20))
    return Frame(
        unit=draw(U64),
        row_start=row_start,
        row_stop=row_start + num_here,
        num_rows=row_start + num_here + draw(st.integers(0, 9)),
        dtype=draw(st.sampled_from(DType)),
        sent_us=draw(U64),
        payload=draw(st.binary(min_size=1, max_size=40)) * num_here,
        arrived=draw(st.none() | st.builds(Arrived, U64, U64)),
    )


@st.composite
def step_frames(draw: st.DrawFn) -> Frame:
    """First frames of steps, with their rows."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=20))
    rows = tuple(Row(draw(U64), start := draw(st.integers(0, 2**31)), start + count) for count in counts)
    num_rows = sum(counts)
    return Frame(
        unit=draw(U64),
        row_start=0,
        row_stop=num_rows,
        num_rows=num_rows,
        dtype=DType.BFLOAT16,
        sent_us=draw(U64),
        payload=bytes(4 * num_rows),
        rows=rows,
    )


OPENS = st.builds(Frame, unit=st.just(0), open=st.builds(LaneOpen, U64, st.sampled_from(Lane)))
FAILURES = st.builds(
    Frame,
    unit=U64,
    sent_us=U64,
    failure=st.builds(UnitFailure, st.lists(U64).map(tuple), st.sampled_from(ErrorCode)),
)
UP = hidden_frames() | step_frames() | OPENS
DOWN = hidden_frames() | FAILURES | OPENS


@given(UP, st.booleans())
def test_what_the_edge_encodes_the_cloud_decodes(frame: Frame, checked: bool) -> None:  # noqa: FBT001 - drawn
    assert decode_up(encode_up(frame, checked=checked), lane=Lane.DECODE) == frame


@given(DOWN, st.booleans())
def test_what_the_cloud_encodes_the_edge_decodes(frame: Frame, checked: bool) -> None:  # noqa: FBT001 - drawn
    assert decode_down(encode_down(frame, checked=checked), lane=Lane.PREFILL) == frame


@given(UP)
def test_the_generated_parser_reads_our_bytes_and_we_read_its_bytes(frame: Frame) -> None:
    """The lane is ordinary protobuf: any peer that has the contract can take part."""
    message = pb.CarryFramesRequest.FromString(encode_up(frame))
    assert message.payload == frame.payload
    assert message.unit == frame.unit
    assert message.crc32c == value(bytes(frame.payload))
    assert decode_up(message.SerializeToString(), lane=Lane.DECODE) == frame


@given(DOWN)
def test_the_generated_parser_reads_frames_from_the_cloud(frame: Frame) -> None:
    message = pb.CarryFramesResponse.FromString(encode_down(frame))
    assert message.payload == frame.payload
    assert decode_down(message.SerializeToString(), lane=Lane.DECODE) == frame


@given(hidden_frames(), st.randoms())
def test_fields_may_come_in_any_order(frame: Frame, random: Any) -> None:
    """Protobuf promises no order; a payload that is not last is read by the generated parser."""
    parts = []
    for field, set_value in pb.CarryFramesRequest.FromString(encode_up(frame)).ListFields():
        parts.append(pb.CarryFramesRequest(**{field.name: set_value}).SerializeToString())
    random.shuffle(parts)
    assert decode_up(b"".join(parts), lane=Lane.DECODE) == frame


def test_the_last_of_two_payloads_counts_as_protobuf_says() -> None:
    first, second = _frame(payload=b"old!"), _frame(payload=b"new!")
    both = encode_up(first, checked=False) + encode_up(second, checked=False)
    assert decode_up(both, lane=Lane.DECODE).payload == b"new!"


@pytest.mark.parametrize("decode", [decode_up, decode_down])
@given(message=st.binary(max_size=200))
def test_garbage_is_a_protocol_error_and_nothing_else(decode: Callable[..., Frame], message: bytes) -> None:
    try:
        frame = decode(message, lane=Lane.PREFILL)
    except ProtocolError:
        return
    assert frame.payload or frame.open or frame.failure


@given(UP, st.data())
def test_a_message_that_is_cut_short_is_a_protocol_error(frame: Frame, data: st.DataObject) -> None:
    """Cut at a field's end a message may still parse; it is then refused, or it is all that it says."""
    message = encode_up(frame)
    stop = data.draw(st.integers(0, len(message) - 1))
    try:
        decoded = decode_up(message[:stop], lane=Lane.DECODE)
    except ProtocolError:
        return
    assert decoded.open is not None or decoded.payload == frame.payload


@given(hidden_frames(), st.data())
def test_a_flipped_bit_of_the_payload_is_seen(frame: Frame, data: st.DataObject) -> None:
    message = bytearray(encode_up(frame))
    bit = data.draw(st.integers(0, 8 * len(frame.payload) - 1))
    message[-1 - bit // 8] ^= 1 << bit % 8
    with pytest.raises(ProtocolError, match=rf"unit {frame.unit} on the prefill lane was damaged"):
        decode_up(bytes(message), lane=Lane.PREFILL)


def test_a_payload_without_a_checksum_is_not_checked() -> None:
    """0 on the wire means that the sender does not check."""
    message = bytearray(encode_up(_frame(payload=b"abcd"), checked=False))
    message[-1] ^= 1
    assert decode_up(bytes(message), lane=Lane.DECODE).payload == b"abce"


REFUSED = [
    ({"unit": 3, "num_rows": 1, "dtype": 1, "row_stop": 1}, "carries 0 bytes for 1 rows"),
    ({"unit": 3, "num_rows": 1, "row_stop": 1, "payload": b"ab"}, "does not say its dtype"),
    ({"unit": 3, "num_rows": 1, "dtype": 9, "row_stop": 1, "payload": b"ab"}, r"dtype holds 9"),
    ({"unit": 3, "num_rows": 1, "dtype": 1, "row_stop": 2, "payload": b"ab"}, r"rows \[0, 2\) of 1"),
    ({"unit": 3, "num_rows": 4, "dtype": 1, "row_start": 2, "row_stop": 1, "payload": b"a"}, r"\[2, 1\) of 4"),
    ({"unit": 3, "num_rows": 2, "dtype": 1, "row_stop": 2, "payload": b"abc"}, "carries 3 bytes for 2 rows"),
    ({"unit": 3, "num_rows": 2, "sequences": [1, 2], "starts": [1]}, "lists of different lengths"),
    ({"unit": 3, "num_rows": 2, "sequences": [1], "starts": [1]}, "do not fill its 2 tensor rows"),
    (
        {"unit": 3, "num_rows": 1, "sequences": [1, 2], "starts": [1, 1], "counts": [1, 0]},
        "do not fill its 1 tensor rows",
    ),
    ({"open": pb.LaneOpen(session=1)}, r"LaneOpen\.lane holds 0"),
    ({}, r"impossible rows \[0, 0\) of 0"),
]


@pytest.mark.parametrize(("fields", "complaint"), REFUSED)
def test_a_frame_that_contradicts_itself_is_refused(fields: dict[str, Any], complaint: str) -> None:
    message = pb.CarryFramesRequest(**fields).SerializeToString()
    with pytest.raises(ProtocolError, match=complaint):
        decode_up(message, lane=Lane.DECODE)


def test_rows_of_one_token_send_no_counts() -> None:
    frame = _frame(payload=b"abcd", row_stop=2, num_rows=2, rows=(Row(7, 5, 6), Row(8, 1, 2)))
    assert not pb.CarryFramesRequest.FromString(encode_up(frame)).counts


def test_a_payload_is_copied_once_on_the_way_out_and_not_at_all_on_the_way_in() -> None:
    payload = memoryview(bytearray(4 << 20))
    frame = _frame(payload=payload)
    message, encode_peak = _peak_bytes(lambda: encode_up(frame))
    assert encode_peak < 1.1 * len(payload)
    decoded, decode_peak = _peak_bytes(lambda: decode_up(message, lane=Lane.PREFILL))
    assert decode_peak < 0.1 * len(payload)
    assert decoded.payload == payload


def _peak_bytes(call: Callable[[], T]) -> tuple[T, int]:
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _frame(**fields: Any) -> Frame:
    whole = Frame(unit=3, row_start=0, row_stop=1, num_rows=1, dtype=DType.FLOAT32, sent_us=9)
    return replace(whole, **fields)
