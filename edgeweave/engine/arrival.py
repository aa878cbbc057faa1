"""What comes over a lane, on its way from the event loop to the compute thread.

Knows how frames of a unit are put together. The loop does that, so that the compute thread gets whole units.
"""

from dataclasses import dataclass

from edgeweave.errors import ProtocolError
from edgeweave.interleave.effects import FrameArrived
from edgeweave.interleave.nouns import DType, Lane
from edgeweave.wire.assembly import Assembly
from edgeweave.wire.frames import Frame


@dataclass(frozen=True, slots=True)
class Arrival:
    """A frame that arrived; with the last one of a unit, `payload` is all of it: `[num_rows, hidden]`."""

    frame: FrameArrived
    payload: memoryview | None = None


class Staging:
    """Units that are arriving, by lane and number. Belongs to the event loop."""

    def __init__(self, *, row_bytes: int, dtype: DType, largest_bytes: int) -> None:
        self._row_bytes = row_bytes
        self._dtype = dtype
        self._largest_bytes = largest_bytes
        self._open: dict[tuple[Lane, int], Assembly] = {}

    def add(self, lane: Lane, frame: Frame) -> Arrival:
        """Take a frame; ProtocolError if it does not fit its unit."""
        if frame.failure is not None:
            self.drop(lane, frame.unit)
            return Arrival(_arrived(lane, frame))
        assembly = self._assembly(lane, frame)
        assembly.add(frame)
        if not assembly.is_complete:
            return Arrival(_arrived(lane, frame))
        self.drop(lane, frame.unit)
        return Arrival(_arrived(lane, frame), assembly.payload)

    def drop(self, lane: Lane, unit: int) -> None:
        """Forget a unit, if it is here."""
        self._open.pop((lane, unit), None)

    def _assembly(self, lane: Lane, frame: Frame) -> Assembly:
        key = (lane, frame.unit)
        if key not in self._open:
            if frame.num_rows * self._row_bytes > self._largest_bytes:
                raise ProtocolError(
                    f"{lane.name.lower()} unit {frame.unit} has {frame.num_rows} rows of {self._row_bytes} bytes and "
                    f"staging holds {self._largest_bytes}; raise staging_bytes or lower max_prefill_tokens"
                )
            self._open[key] = Assembly(
                frame.unit, num_rows=frame.num_rows, row_bytes=self._row_bytes, dtype=self._dtype
            )
        return self._open[key]


def _arrived(lane: Lane, frame: Frame) -> FrameArrived:
    return FrameArrived(
        lane=lane,
        unit=frame.unit,
        row_start=frame.row_start,
        row_stop=frame.row_stop,
        num_rows=frame.num_rows,
        sent_us=frame.sent_us,
        rows=frame.rows,
        failed=frame.failure.sequences if frame.failure is not None else None,
        code=frame.failure.code if frame.failure is not None else None,
    )
