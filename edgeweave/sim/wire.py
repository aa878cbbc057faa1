"""The link of the simulator: one direction carries one frame at a time, decode before prefill.

Knows delay, rate and the size of frames. A real sender bounds what lies unsent before it, so a decode message waits at
most for the frame that is being sent; here that is exact. Frames are not events: a message is one, however long, and
decode that goes in between delays its end.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from edgeweave.interleave.nouns import Lane
from edgeweave.sim.events import Events


@dataclass(slots=True)
class _Transfer:
    """A prefill message on its way out: its frames follow one another from `begin_us`, the last ends at `end_us`.

    Decode that goes in between moves both, as if the frames before it had been sent later.
    """

    message: Any
    begin_us: int
    end_us: int
    is_dropped: bool = False


@dataclass(slots=True)
class Direction:
    """One direction between site and cloud. `bytes_per_us` is the rate; `deliver` gets what arrives."""

    events: Events
    delay_us: int
    bytes_per_us: float
    deliver: Callable[[Any], None]
    frame_bytes: int = 256 * 1024
    _waiting: deque[tuple[Any, int]] = field(default_factory=deque)
    _transfer: _Transfer | None = None
    _decode_end_us: int = 0

    def send(self, lane: Lane, message: Any, *, num_bytes: int) -> None:
        """Send `message` of `num_bytes` on a lane."""
        if lane is Lane.DECODE:
            self._send_between(message, num_bytes)
            return
        self._waiting.append((message, num_bytes))
        if self._transfer is None:
            self._begin_next()

    def drop(self, lane: Lane, unit: int) -> None:
        """Forget the frames of a unit that are not sent yet; what is on the decode lane leaves in any case."""
        if lane is Lane.DECODE:
            return
        self._waiting = deque([entry for entry in self._waiting if entry[0].unit != unit])
        transfer = self._transfer
        if transfer is not None and transfer.message.unit == unit:
            transfer.is_dropped, transfer.end_us = True, self._gap_us(transfer)
            self.events.at(transfer.end_us, partial(self._end, transfer))

    def _send_between(self, message: Any, num_bytes: int) -> None:
        """Send a decode message after the frame that is being sent, and after decode before it."""
        took_us, transfer = self._took_us(num_bytes), self._transfer
        gap_us = self._gap_us(transfer) if transfer is not None else self.events.now_us
        begin_us = max(gap_us, self._decode_end_us)
        self._decode_end_us = begin_us + took_us
        if transfer is not None and begin_us < transfer.end_us:
            transfer.begin_us += took_us
            transfer.end_us += took_us
        self.events.at(self._decode_end_us + self.delay_us, partial(self.deliver, message))

    def _gap_us(self, transfer: _Transfer) -> int:
        """Return when the frame that is being sent ends."""
        frame_us = self.frame_bytes / self.bytes_per_us
        num_frames = math.ceil(max(0, self.events.now_us - transfer.begin_us) / frame_us)
        return min(transfer.begin_us + math.ceil(num_frames * frame_us), transfer.end_us)

    def _begin_next(self) -> None:
        self._transfer = None
        if self._waiting:
            message, num_bytes = self._waiting.popleft()
            begin_us = max(self.events.now_us, self._decode_end_us)
            self._transfer = _Transfer(message, begin_us, begin_us + self._took_us(num_bytes))
            self.events.at(self._transfer.end_us, partial(self._end, self._transfer))

    def _end(self, transfer: _Transfer) -> None:
        if transfer is not self._transfer:
            return  # it was dropped, and ended before
        if transfer.end_us > self.events.now_us:
            self.events.at(transfer.end_us, partial(self._end, transfer))  # decode went in between
            return
        if not transfer.is_dropped:
            self.events.after(self.delay_us, partial(self.deliver, transfer.message))
        self._begin_next()

    def _took_us(self, num_bytes: int) -> int:
        return max(1, round(num_bytes / self.bytes_per_us))
