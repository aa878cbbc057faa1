"""The staging of one unit: its frames, put together.

Knows which rows are there. Does not know lanes, nor who waits for the unit.
"""

import numpy as np

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import DType
from edgeweave.wire.frames import Frame


class Assembly:
    """One unit's `[num_rows, hidden]`, filled frame by frame in any order.

    The memory is taken at once: a caller that learned `num_rows` from a peer checks it against its largest unit first.
    It is not cleared, which for a large chunk would hold up the whole process for milliseconds.
    """

    def __init__(self, unit: int, *, num_rows: int, row_bytes: int, dtype: DType) -> None:
        self.unit = unit
        self._num_rows = num_rows
        self._row_bytes = row_bytes
        self._dtype = dtype
        self._buffer = np.empty(num_rows * row_bytes, dtype=np.uint8).data
        self._is_there = bytearray(num_rows)  # one byte a row: 0 or 1
        self._num_missing = num_rows

    def add(self, frame: Frame) -> None:
        """Copy the rows of `frame`; ProtocolError if they do not belong here or are here already."""
        self._check(frame)
        start, stop = frame.row_start, frame.row_stop
        self._buffer[start * self._row_bytes : stop * self._row_bytes] = frame.payload
        self._is_there[start:stop] = b"\x01" * (stop - start)
        self._num_missing -= stop - start

    @property
    def is_complete(self) -> bool:
        """Whether all rows are there."""
        return self._num_missing == 0

    @property
    def payload(self) -> memoryview:
        """All rows, `[num_rows, hidden]`, writable; without a copy. Only for a unit that is complete."""
        if not self.is_complete:
            raise ValueError(f"unit {self.unit} lacks {self._num_missing} of its {self._num_rows} rows")
        return self._buffer

    def _check(self, frame: Frame) -> None:
        start, stop = frame.row_start, frame.row_stop
        if frame.num_rows != self._num_rows:
            raise self._misfit(frame, f"{frame.num_rows} rows where the unit has {self._num_rows}")
        if not 0 <= start < stop <= self._num_rows:
            raise self._misfit(frame, f"rows that are not among the {self._num_rows} of the unit")
        if frame.dtype is not self._dtype:
            dtype = "no dtype" if frame.dtype is None else frame.dtype.name.lower()
            raise self._misfit(frame, f"{dtype} where the session has {self._dtype.name.lower()}")
        if len(frame.payload) != (stop - start) * self._row_bytes:
            raise self._misfit(frame, f"{len(frame.payload)} bytes where a row has {self._row_bytes}")
        if self._is_there.find(1, start, stop) >= 0:
            raise self._misfit(frame, "rows that came before")

    def _misfit(self, frame: Frame, complaint: str) -> ProtocolError:
        rows = f"[{frame.row_start}, {frame.row_stop})"
        return ProtocolError(f"frame of unit {self.unit} with rows {rows} has {complaint}; the session must end")
