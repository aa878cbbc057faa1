"""How long a clean trip over a lane takes, as the receiver sees it.

Knows the smallest difference between arrival and sending, which holds the offset between the two clocks as well:
the smallest is a trip that met no queue. Does not know which part is offset and which is distance.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.effects import FrameArrived
from edgeweave.interleave.nouns import Lane


@dataclass(slots=True)
class CleanTrips:
    """The cleanest trip seen on each lane, in microseconds, clock offset included."""

    shortest_us: dict[Lane, int] = field(default_factory=dict)

    def observe(self, frame: FrameArrived, *, now_us: int) -> None:
        """Take the times of a frame, each by the clock of its own side."""
        trip_us = now_us - frame.sent_us
        self.shortest_us[frame.lane] = min(trip_us, self.shortest_us.get(frame.lane, trip_us))

    def clean_arrival_us(self, lane: Lane, *, sent_us: int) -> int | None:
        """Return when something sent at `sent_us` is here after a clean trip, by the receiver's clock."""
        shortest_us = self.shortest_us.get(lane)
        return None if shortest_us is None else sent_us + shortest_us
