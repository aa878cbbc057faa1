"""When the next frame may leave, so that bytes follow each other at a rate.

Knows a rate, a credit and microseconds. Does not know where the rate comes from (`path_rate`), nor how to wait.
"""

from math import ceil

MOST_UNSENT_BYTES = 1 << 20
"""What may lie between the lane and the link when the rate is right."""

_LEAST_CREDIT_US = 1250
"""How late a wait of an event loop ends at worst while nothing keeps the loop: it counts in milliseconds."""

_MOST_CREDIT_US = 2000
"""What a step that comes behind a full credit waits for it on a slow link."""


class Pace:
    """A clock of the link as the sender imagines it: each frame takes it for a time, and the next may leave after that.

    Time that passed unused is credit: about as much as makes `MOST_UNSENT_BYTES`, but as long as a timer is late, or
    the rate would not hold, and no longer than a step may wait.
    """

    def __init__(self) -> None:
        self._free_at_us = 0.0

    def wait_us(self, *, now_us: int) -> int:
        """Return how long the next frame has to wait, 0 if it may leave now."""
        return max(0, ceil(self._free_at_us - now_us))

    def spend(self, num_bytes: int, *, bytes_per_s: int, now_us: int) -> None:
        """Count a frame of `num_bytes` that leaves now, on a link with this rate."""
        credit_us = (MOST_UNSENT_BYTES - num_bytes) * 1e6 / bytes_per_s
        credit_us = max(_LEAST_CREDIT_US, min(_MOST_CREDIT_US, credit_us))
        self._free_at_us = max(self._free_at_us, now_us - credit_us) + num_bytes * 1e6 / bytes_per_s
