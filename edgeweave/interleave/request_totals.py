"""What became of requests since the start of the scheduler, and how long users waited of late.

Knows when a request came, was admitted, had its first token and ended: three looks a request, and none per token after
the first. Outlives sessions.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from edgeweave.interleave.recent_times import RecentTimes
from edgeweave.interleave.requests import Request


class RequestEnd(IntEnum):
    """How a request ended. The first two are those of `FinishReason`."""

    STOP = 1
    LENGTH = 2
    CANCELLED = 3
    DEADLINE = 4
    FAILED = 5
    LOST = 6
    REFUSED = 7


@dataclass(slots=True)
class RequestTotals:
    """Ends by reason, and times of the last minute.

    `queue` is from arrival to admission, `first_token` from arrival to the first token, `per_token` the mean time of an
    output's later tokens, taken when it ends.
    """

    ends: dict[RequestEnd, int] = field(default_factory=lambda: dict.fromkeys(RequestEnd, 0))
    queue: RecentTimes = field(default_factory=RecentTimes)
    first_token: RecentTimes = field(default_factory=RecentTimes)
    per_token: RecentTimes = field(default_factory=RecentTimes)

    def take_admitted(self, request: Request, *, now_us: int) -> None:
        """A sequence was opened for `request`; after a preemption that is no news."""
        if not request.is_admitted:
            request.is_admitted = True
            self.queue.add(now_us - request.arrived_us, now_us=now_us)

    def take_first_token(self, request: Request, *, now_us: int) -> None:
        """The first token of `request` came."""
        request.first_token_us = now_us
        self.first_token.add(now_us - request.arrived_us, now_us=now_us)

    def take_finished(self, request: Request, end: RequestEnd, *, now_us: int) -> None:
        """The last token of `request` came."""
        self.ends[end] += 1
        num_later = len(request.output) - request.num_given - 1
        if num_later > 0 and request.first_token_us is not None:
            self.per_token.add(round((now_us - request.first_token_us) / num_later), now_us=now_us)

    def take_ended(self, end: RequestEnd, *, num_requests: int = 1) -> None:
        """Requests ended without a last token."""
        self.ends[end] += num_requests
