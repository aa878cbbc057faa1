"""What travels on a lane: frames of hidden states, the opening of the lane, failures; and how a unit is cut.

Knows rows and bytes of a unit. Does not know how a frame is written (`edgeweave.wire.frame_codec`) or sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from edgeweave.interleave.nouns import DType, ErrorCode, Lane, Row

Payload = bytes | memoryview
"""Bytes of hidden states: `[rows, hidden]`, little endian, contiguous."""

WARM_UP = 0
"""The unit of frames that the cloud echoes: pings and the warm-up of a lane. Chunks and steps count from 1."""


@dataclass(frozen=True, slots=True)
class LaneOpen:
    """Names the session and the lane of a stream; its first message, and the cloud's first answer."""

    session: int
    lane: Lane


@dataclass(frozen=True, slots=True)
class UnitFailure:
    """Why there is no result for a unit, and which sequences fail with it."""

    sequences: tuple[int, ...]
    code: ErrorCode


@dataclass(frozen=True, slots=True)
class Arrived:
    """How fast the frames of a unit came to the sender of this, in their fastest stretch."""

    unit: int
    bytes_per_s: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a lane: tensor rows `[row_start, row_stop)` of the `num_rows` of a chunk or step.

    `payload` is `[row_stop - row_start, hidden]`, little endian, of `dtype`. `rows` names the rows of a step and is
    set in its first frame only, on the way up. `sent_us` is the sender's clock when the unit's first byte was ready.
    A frame that opens a stream has `open`, one that reports a failed unit has `failure`; neither has a payload.
    Any frame may tell by `arrived` how the latest unit from the other end came.
    """

    unit: int
    row_start: int = 0
    row_stop: int = 0
    num_rows: int = 0
    dtype: DType | None = None
    sent_us: int = 0
    payload: Payload = b""
    rows: tuple[Row, ...] | None = None
    failure: UnitFailure | None = None
    open: LaneOpen | None = None
    arrived: Arrived | None = None


def cut_rows(payload: Payload, *, unit: Frame, row_bytes: int, frame_bytes: int) -> Iterator[Frame]:
    """Cut hidden states into even frames of about `frame_bytes`, whole rows each, at least one.

    Args:
        payload: `[rows, hidden]`, contiguous bytes of a whole unit or of a piece of one.
        unit: what all frames share, with `row_start` at the first row of `payload`; its `rows` go into the first.
        row_bytes: bytes of one row.
        frame_bytes: the size to come close to; a remainder is no frame of its own.
    """
    view = memoryview(payload).cast("B")
    if len(view) % row_bytes:
        raise ValueError(f"{len(view)} bytes are no whole number of rows of {row_bytes} bytes")
    num_rows = len(view) // row_bytes
    num_frames = min(num_rows, max(1, round(len(view) / frame_bytes)))
    edges = [index * num_rows // num_frames for index in range(num_frames + 1)] if num_rows else []
    for start, stop in pairwise(edges):
        yield replace(
            unit,
            row_start=unit.row_start + start,
            row_stop=unit.row_start + stop,
            payload=view[start * row_bytes : stop * row_bytes],
            rows=unit.rows if start == 0 else None,
        )
