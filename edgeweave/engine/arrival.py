"""What comes over a lane, on its way from the event loop to the compute thread.

Knows how frames of a unit are put together. The loop does that, so that the compute thread gets whole units: it is
told when a unit begins to arrive and when all of it is here, and not woken for the frames in between.
"""

from dataclasses import dataclass, replace

from edgeweave.clock import Clock
from edgeweave.errors import ProtocolError
from edgeweave.interleave.effects import FrameArrived
from edgeweave.interleave.nouns import DType, Lane
from edgeweave.wire.assembly import Assembly
from edgeweave.wire.frames import Frame


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that arrived since the unit was told of last; with the last of them `payload` is all of the unit.

    The payload is `[num_rows, hidden]`.
    """

    frame: FrameArrived
    payload: memoryview | None = None


@dataclass(slots=True)
class _Arriving:
    """A unit that is not all here; `num_told` of its rows the core has heard of."""

    assembly: Assembly
    num_told: int = 0


class Staging:
    """Units that are arriving, by lane and number. Belongs to the event loop."""

    def __init__(self, *, row_bytes: int, dtype: DType, largest_bytes: int, clock: Clock) -> None:
        self._clock = clock
        self._row_bytes = row_bytes
        self._dtype = dtype
        self._largest_bytes = largest_bytes
        self._open: dict[tuple[Lane, int], _Arriving] = {}

    def add(self, lane: Lane, frame: Frame) -> Arrival | None:
        """Take a frame, and return what the core is to hear: when a unit begins to arrive, and when all of it is here.

        Raises:
            ProtocolError: the frame does not fit its unit.
        """
        if frame.failure is not None:
            self.drop(lane, frame.unit)
            return Arrival(self._arrived(lane, frame))
        unit = self._unit(lane, frame)
        unit.assembly.add(frame)
        if unit.assembly.is_complete:
            self.drop(lane, frame.unit)
            untold = replace(self._arrived(lane, frame), row_start=unit.num_told, row_stop=frame.num_rows)
            return Arrival(untold, unit.assembly.payload)
        if unit.num_told:
            return None
        unit.num_told = frame.row_stop - frame.row_start
        return Arrival(self._arrived(lane, frame))

    def drop(self, lane: Lane, unit: int) -> None:
        """Forget a unit, if it is here."""
        self._open.pop((lane, unit), None)

    def _unit(self, lane: Lane, frame: Frame) -> _Arriving:
        key = (lane, frame.unit)
        if key not in self._open:
            self._open[key] = _Arriving(self._assembly(frame, lane))
        return self._open[key]

    def _assembly(self, frame: Frame, lane: Lane) -> Assembly:
        if frame.num_rows * self._row_bytes > self._largest_bytes:
            raise ProtocolError(
                f"{lane.name.lower()} unit {frame.unit} has {frame.num_rows} rows of {self._row_bytes} bytes and "
                f"staging holds {self._largest_bytes}; raise staging_bytes or lower max_prefill_tokens"
            )
        return Assembly(frame.unit, num_rows=frame.num_rows, row_bytes=self._row_bytes, dtype=self._dtype)

    def _arrived(self, lane: Lane, frame: Frame) -> FrameArrived:
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
            arrived_us=self._clock.now_us(),
        )
