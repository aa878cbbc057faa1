"""What the compute thread hears of a unit that arrives."""

import pytest

from edgeweave.clock import ManualClock
from edgeweave.engine.arrival import Staging
from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import DType, ErrorCode, Lane, Row
from edgeweave.wire.frames import Frame, UnitFailure

ROW = bytes(4)
CLOCK = ManualClock(start_us=5_000)


def staging() -> Staging:
    return Staging(row_bytes=4, dtype=DType.FLOAT32, largest_bytes=64, clock=CLOCK)


def frame(start: int, stop: int, *, num_rows: int = 8, rows: tuple[Row, ...] | None = None) -> Frame:
    return Frame(
        unit=3,
        row_start=start,
        row_stop=stop,
        num_rows=num_rows,
        dtype=DType.FLOAT32,
        sent_us=10 * start,
        payload=ROW * (stop - start),
        rows=rows,
    )


def test_a_unit_is_heard_of_when_it_begins_to_arrive_and_when_all_is_here() -> None:
    """Frames in between wake nobody; all rows are told, once each."""
    staged = staging()
    arrivals = [staged.add(Lane.PREFILL, frame(start, start + 2)) for start in range(0, 8, 2)]
    assert arrivals[1] is arrivals[2] is None
    first, last = arrivals[0], arrivals[3]
    assert first is not None
    assert last is not None
    assert (first.frame.row_start, first.frame.row_stop, first.payload) == (0, 2, None)
    assert (last.frame.row_start, last.frame.row_stop) == (2, 8)
    assert bytes(last.payload or b"") == ROW * 8
    assert (last.frame.sent_us, last.frame.arrived_us) == (60, 5_000)


def test_a_unit_of_one_frame_is_heard_of_once() -> None:
    rows = tuple(Row(number, 0, 1) for number in range(8))
    arrival = staging().add(Lane.DECODE, frame(0, 8, rows=rows))
    assert arrival is not None
    assert (arrival.frame.row_start, arrival.frame.row_stop, arrival.frame.rows) == (0, 8, rows)
    assert bytes(arrival.payload or b"") == ROW * 8


def test_a_unit_that_was_dropped_is_heard_of_again_when_more_of_it_comes() -> None:
    """So that whoever dropped it can say once more that nobody wants it."""
    staged = staging()
    assert staged.add(Lane.PREFILL, frame(0, 2)) is not None
    staged.drop(Lane.PREFILL, 3)
    arrival = staged.add(Lane.PREFILL, frame(2, 4))
    assert arrival is not None
    assert (arrival.frame.row_start, arrival.frame.row_stop, arrival.payload) == (2, 4, None)


def test_a_failure_ends_what_was_arriving() -> None:
    staged = staging()
    staged.add(Lane.PREFILL, frame(0, 2))
    failed = staged.add(Lane.PREFILL, Frame(unit=3, failure=UnitFailure((1,), ErrorCode.COMPUTE)))
    assert failed is not None
    assert failed.frame.failed == (1,)
    assert staged.add(Lane.PREFILL, frame(0, 2)) is not None, "nothing was left of it"


def test_a_unit_that_staging_cannot_hold_is_refused() -> None:
    with pytest.raises(ProtocolError, match="staging holds 64"):
        staging().add(Lane.PREFILL, frame(0, 2, num_rows=17))
