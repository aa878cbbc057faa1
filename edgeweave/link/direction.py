"""One direction of a link: what enters first leaves first, later by transmission and delay.

Knows due times in nanoseconds of whatever clock its caller reads. Does not know sockets or threads.
"""

from collections import deque
from typing import Generic, TypeVar

from edgeweave.link.profile import LinkProfile

ContentT = TypeVar("ContentT")


class Direction(Generic[ContentT]):
    """The queue of one direction, for all connections together.

    Content that enters waits until the link is free, takes it for its transmission time, and is due a delay after
    its last byte has left. What waits is bounded by the buffer of the profile: once that is full, the direction is
    paused and nothing may be read for it until a quarter has left, so that it does not stop and go for every piece.
    """

    def __init__(self, profile: LinkProfile) -> None:
        self._profile = profile
        self._buffer_ns = profile.transmission_ns(profile.buffer_bytes)
        self._crossing: deque[tuple[int, ContentT]] = deque()
        self._free_at_ns = 0
        self.is_paused = False
        self.num_bytes = 0

    def enter(self, content: ContentT, *, num_bytes: int, now_ns: int) -> None:
        """Take `content` in, `num_bytes` long; pause if that fills the buffer."""
        start_ns = max(now_ns, self._free_at_ns)
        self._free_at_ns = start_ns + self._profile.transmission_ns(num_bytes)
        self._crossing.append((self._free_at_ns + self._profile.delay_ns, content))
        self.num_bytes += num_bytes
        self.is_paused = self.is_paused or self._free_at_ns - now_ns >= self._buffer_ns

    def leave(self, now_ns: int) -> ContentT | None:
        """Return the oldest content if it is due, and forget it."""
        if self._crossing and self._crossing[0][0] <= now_ns:
            return self._crossing.popleft()[1]
        return None

    def resume(self, now_ns: int) -> bool:
        """End a pause if there is room again, and return whether that happened."""
        if self.is_paused and now_ns >= self._room_at_ns:
            self.is_paused = False
            return True
        return False

    @property
    def next_event_ns(self) -> int | None:
        """When `leave` or `resume` will have something to do."""
        times = [self._crossing[0][0]] if self._crossing else []
        if self.is_paused:
            times.append(self._room_at_ns)
        return min(times, default=None)

    @property
    def _room_at_ns(self) -> int:
        return self._free_at_ns - self._buffer_ns * 3 // 4
