"""One direction of a link: what enters first leaves first, later by transmission and delay.

Knows due times in nanoseconds of whatever clock its caller reads. Does not know sockets or threads.
"""

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from edgeweave.link.profile import LinkProfile
from edgeweave.link.unsteadiness import Unsteadiness

ContentT = TypeVar("ContentT")


@dataclass(slots=True)
class _Crossing(Generic[ContentT]):
    """Content on its way: when its last byte leaves the near end, how much longer it travels, when it is there."""

    content: ContentT
    sent_ns: int
    jitter_ns: int
    due_ns: int


class Direction(Generic[ContentT]):
    """The queue of one direction, for all connections together.

    Content that enters waits until the link is free, takes it for its transmission time, and is due a delay after
    its last byte has left, or with the content before it, if that is later: nothing overtakes. What waits is bounded
    by the buffer of the profile: once that is full, the direction is paused and nothing may be read for it until a
    quarter has left, so that it does not stop and go for every piece.

    A change of rate, and a stall, concern what has not left the near end; a change of delay too. What is under way
    arrives as it would have.
    """

    def __init__(self, profile: LinkProfile, *, seed: str = "0") -> None:
        self._profile = profile
        self._unsteadiness = Unsteadiness(profile, seed=seed)
        self._crossing: deque[_Crossing[ContentT]] = deque()
        self._free_at_ns = 0
        self._last_due_ns = 0
        self.is_paused = False
        self.num_bytes = 0

    def enter(self, content: ContentT, *, num_bytes: int, now_ns: int) -> None:
        """Take `content` in, `num_bytes` long; pause if that fills the buffer."""
        start_ns = max(now_ns, self._free_at_ns)
        transmission_ns = self._profile.transmission_ns(num_bytes)
        self._free_at_ns = self._unsteadiness.sent_ns(start_ns, transmission_ns=transmission_ns)
        crossing = _Crossing(content, self._free_at_ns, self._unsteadiness.jitter_ns(), due_ns=0)
        self._send(crossing)
        self._crossing.append(crossing)
        self.num_bytes += num_bytes
        self.is_paused = self.is_paused or self._free_at_ns - now_ns >= self._buffer_ns

    def leave(self, now_ns: int) -> ContentT | None:
        """Return the oldest content if it is due, and forget it."""
        if self._crossing and self._crossing[0].due_ns <= now_ns:
            return self._crossing.popleft().content
        return None

    def resume(self, now_ns: int) -> bool:
        """End a pause if there is room again, and return whether that happened."""
        if self.is_paused and now_ns >= self._room_at_ns:
            self.is_paused = False
            return True
        return False

    def change(self, profile: LinkProfile, *, now_ns: int) -> None:
        """Be another link from now on; what waits leaves at the new rate, however much of it there is."""
        before, self._profile = self._profile, profile
        self._unsteadiness.change(profile)
        waiting_ns = max(0, self._free_at_ns - now_ns)
        self._free_at_ns = now_ns + waiting_ns * before.bytes_per_s // profile.bytes_per_s
        for crossing in self._waiting(now_ns):
            crossing.sent_ns = now_ns + (crossing.sent_ns - now_ns) * before.bytes_per_s // profile.bytes_per_s
            self._send(crossing)

    def stall(self, duration_ns: int, *, now_ns: int) -> None:
        """Let nothing leave for `duration_ns`."""
        self._free_at_ns = max(self._free_at_ns, now_ns) + duration_ns
        for crossing in self._waiting(now_ns):
            crossing.sent_ns += duration_ns
            self._send(crossing)

    def clear(self) -> None:
        """Lose everything that is on its way; the link is free."""
        self._crossing.clear()
        self._free_at_ns = self._last_due_ns = 0
        self.is_paused = False

    @property
    def next_event_ns(self) -> int | None:
        """When `leave` or `resume` will have something to do."""
        times = [self._crossing[0].due_ns] if self._crossing else []
        if self.is_paused:
            times.append(self._room_at_ns)
        return min(times, default=None)

    def _send(self, crossing: _Crossing[ContentT]) -> None:
        """Give content its time of arrival, from when it has left and what is in front of it."""
        due_ns = crossing.sent_ns + self._profile.delay_ns + crossing.jitter_ns
        self._last_due_ns = crossing.due_ns = max(due_ns, self._last_due_ns)

    def _waiting(self, now_ns: int) -> list[_Crossing[ContentT]]:
        """Return what has not left the near end; what has keeps its time of arrival, which the others come behind."""
        away = [crossing.due_ns for crossing in self._crossing if crossing.sent_ns <= now_ns]
        self._last_due_ns = max(away, default=0)
        return [crossing for crossing in self._crossing if crossing.sent_ns > now_ns]

    @property
    def _buffer_ns(self) -> int:
        return self._profile.transmission_ns(self._profile.buffer_bytes)

    @property
    def _room_at_ns(self) -> int:
        return self._free_at_ns - self._buffer_ns * 3 // 4
