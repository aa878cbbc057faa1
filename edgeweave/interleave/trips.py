"""How long a clean trip over a lane takes, as the receiver sees it.

Knows the smallest difference between arrival and sending, which holds the offset between the two clocks as well:
the smallest is a trip that met no queue. Does not know which part is offset and which is distance.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class CleanTrip:
    """The cleanest trip seen on one lane, in microseconds, clock offset included."""

    shortest_us: int | None = None

    def observe(self, *, sent_us: int, arrived_us: int) -> None:
        """Take the times of one first frame, each by the clock of its own side."""
        trip_us = arrived_us - sent_us
        if self.shortest_us is None or trip_us < self.shortest_us:
            self.shortest_us = trip_us

    def clean_arrival_us(self, *, sent_us: int) -> int | None:
        """Return when something sent at `sent_us` is here after a clean trip, by the receiver's clock."""
        return None if self.shortest_us is None else sent_us + self.shortest_us
