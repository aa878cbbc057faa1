"""A unit is cut into frames of whole rows, and put together again from them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import DType, Row
from edgeweave.wire.assembly import Assembly
from edgeweave.wire.frames import Frame, cut_rows

SHAPES = {"num_rows": st.integers(1, 40), "row_bytes": st.integers(1, 16), "frame_bytes": st.integers(1, 64)}


def _payload(num_bytes: int) -> bytes:
    return bytes(index % 251 for index in range(num_bytes))


def _unit(num_rows: int, row_start: int = 0, rows: tuple[Row, ...] | None = None) -> Frame:
    return Frame(unit=5, row_start=row_start, num_rows=num_rows, dtype=DType.FLOAT32, sent_us=77, rows=rows)


@given(**SHAPES)
def test_frames_are_whole_rows_in_order_and_about_their_size(num_rows: int, row_bytes: int, frame_bytes: int) -> None:
    """No remainder has a frame of its own: sizes differ by a row at most."""
    payload = _payload(num_rows * row_bytes)
    frames = list(cut_rows(payload, unit=_unit(num_rows), row_bytes=row_bytes, frame_bytes=frame_bytes))
    assert b"".join(frame.payload for frame in frames) == payload
    assert [frame.row_start for frame in frames] == [0, *(frame.row_stop for frame in frames[:-1])]
    for frame in frames:
        assert len(frame.payload) == (frame.row_stop - frame.row_start) * row_bytes
        assert len(frame.payload) <= max(1.5 * frame_bytes, row_bytes) + row_bytes
        assert (frame.unit, frame.num_rows, frame.sent_us) == (5, num_rows, 77)
    sizes = {frame.row_stop - frame.row_start for frame in frames}
    assert max(sizes) - min(sizes) <= 1


def test_rows_of_a_step_are_named_once_in_its_first_frame() -> None:
    rows = (Row(1, 4, 5), Row(2, 9, 10))
    first, second = cut_rows(bytes(8), unit=_unit(2, rows=rows), row_bytes=4, frame_bytes=4)
    assert first.rows == rows
    assert second.rows is None


def test_a_piece_of_a_unit_is_cut_from_its_own_first_row() -> None:
    """A head sends each piece of a chunk as soon as it is computed."""
    frames = list(cut_rows(bytes(12), unit=_unit(10, row_start=6), row_bytes=4, frame_bytes=8))
    assert [(frame.row_start, frame.row_stop) for frame in frames] == [(6, 7), (7, 9)]


def test_a_payload_of_a_broken_row_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="7 bytes are no whole number of rows of 4 bytes"):
        list(cut_rows(bytes(7), unit=_unit(2), row_bytes=4, frame_bytes=8))


@given(**SHAPES, order=st.randoms())
def test_a_unit_is_complete_when_all_its_rows_came_in_any_order(
    num_rows: int, row_bytes: int, frame_bytes: int, order: random.Random
) -> None:
    payload = _payload(num_rows * row_bytes)
    frames = list(cut_rows(payload, unit=_unit(num_rows), row_bytes=row_bytes, frame_bytes=frame_bytes))
    order.shuffle(frames)
    assembly = Assembly(5, num_rows=num_rows, row_bytes=row_bytes, dtype=DType.FLOAT32)
    for frame in frames:
        assert not assembly.is_complete
        assembly.add(frame)
    assert assembly.is_complete
    assert assembly.payload == payload


MISFITS = [
    ({"row_start": 1, "row_stop": 3, "payload": bytes(8)}, "has rows that came before"),
    ({"row_start": 3, "row_stop": 5, "payload": bytes(8)}, "has rows that are not among the 4 of the unit"),
    ({"row_start": 2, "row_stop": 4, "payload": bytes(8), "num_rows": 9}, "has 9 rows where the unit has 4"),
    ({"row_start": 2, "row_stop": 4, "payload": bytes(7)}, "has 7 bytes where a row has 4"),
    ({"row_start": 2, "row_stop": 4, "payload": bytes(8), "dtype": DType.FLOAT16}, "has float16 where"),
    ({"row_start": 2, "row_stop": 4, "payload": bytes(8), "dtype": None}, "has no dtype where"),
]


@pytest.mark.parametrize(("fields", "complaint"), MISFITS)
def test_a_frame_that_does_not_fit_the_unit_is_refused_and_changes_nothing(
    fields: dict[str, object], complaint: str
) -> None:
    assembly = Assembly(5, num_rows=4, row_bytes=4, dtype=DType.FLOAT32)
    first = {"unit": 5, "row_stop": 2, "num_rows": 4, "dtype": DType.FLOAT32, "payload": b"12345678"}
    assembly.add(Frame(**first))  # type: ignore[arg-type]  # fields of a table
    with pytest.raises(ProtocolError, match=complaint):
        assembly.add(Frame(**{**first, **fields}))  # type: ignore[arg-type]  # fields of a table
    with pytest.raises(ValueError, match="unit 5 lacks 2 of its 4 rows"):
        _ = assembly.payload
    rest = {**first, "row_start": 2, "row_stop": 4, "payload": b"abcdefgh"}
    assembly.add(Frame(**rest))  # type: ignore[arg-type]  # fields of a table
    assert bytes(assembly.payload) == b"12345678abcdefgh"
