"""The link of the simulator: one direction carries one message at a time, decode before prefill.

Knows delay and rate. A real sender bounds what lies unsent before it, so a decode frame waits at most for the frame
that is being sent; here that is exact.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgeweave.interleave.nouns import Lane
from edgeweave.sim.events import Events


@dataclass(slots=True)
class Direction:
    """One direction between site and cloud. `bytes_per_us` is the rate; `deliver` gets what arrives."""

    events: Events
    delay_us: int
    bytes_per_us: float
    deliver: Callable[[Any], None]
    num_bytes: int = 0
    _queues: dict[Lane, deque[tuple[Any, int]]] = field(default_factory=lambda: {lane: deque() for lane in Lane})
    _is_sending: bool = False

    def send(self, lane: Lane, message: Any, *, num_bytes: int) -> None:
        """Send `message` of `num_bytes` on a lane."""
        self._queues[lane].append((message, num_bytes))
        if not self._is_sending:
            self._send_next()

    def drop(self, lane: Lane, unit: int) -> None:
        """Forget frames of a unit that are not sent yet."""
        kept = [entry for entry in self._queues[lane] if entry[0].unit != unit]
        self._queues[lane] = deque(kept)

    def _send_next(self) -> None:
        queue = self._queues[Lane.DECODE] or self._queues[Lane.PREFILL]
        self._is_sending = bool(queue)
        if not queue:
            return
        message, num_bytes = queue.popleft()
        self.num_bytes += num_bytes
        took_us = max(1, round(num_bytes / self.bytes_per_us))
        self.events.after(took_us, self._send_next)
        self.events.after(took_us + self.delay_us, lambda: self.deliver(message))
