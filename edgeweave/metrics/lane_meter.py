"""Counts bytes of the lanes of one engine, over all its sessions.

Knows that a lane counts itself while it is open: nothing is added here for a frame.
"""

from collections import Counter
from typing import Protocol

from edgeweave.interleave.nouns import Lane


class CountedLane(Protocol):
    """A lane that counts the hidden states it carries, in bytes."""

    lane: Lane
    sent_bytes: int
    received_bytes: int


class LaneMeter:
    """The lanes that are open, and what those before them carried."""

    def __init__(self) -> None:
        self.num_opened: Counter[Lane] = Counter(dict.fromkeys(Lane, 0))
        self._open: dict[Lane, CountedLane] = {}
        self._sent_before: Counter[Lane] = Counter()
        self._received_before: Counter[Lane] = Counter()

    def watch(self, lane: CountedLane) -> None:
        """A lane was opened; the one before it carries nothing more."""
        before = self._open.get(lane.lane)
        if before is not None:
            self._sent_before[lane.lane] += before.sent_bytes
            self._received_before[lane.lane] += before.received_bytes
        self._open[lane.lane] = lane
        self.num_opened[lane.lane] += 1

    def sent_bytes(self, lane: Lane) -> int:
        """Return what this engine sent on a lane."""
        return self._sent_before[lane] + (self._open[lane].sent_bytes if lane in self._open else 0)

    def received_bytes(self, lane: Lane) -> int:
        """Return what this engine received on a lane."""
        return self._received_before[lane] + (self._open[lane].received_bytes if lane in self._open else 0)
