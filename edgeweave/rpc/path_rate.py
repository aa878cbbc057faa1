"""How fast the path to the other end of a lane is, learned from how fast units came out there.

Knows what the other end told, and what units were sent at. Does not know time.
"""

from collections import deque
from math import inf, isinf

from edgeweave.wire.frames import WARM_UP, Arrived

PACED_SHARE = 0.9
"""Share of the rate that is used, so that no queue grows in front of the link."""

_FIRST_SHARE = 2.0
_PROBED_SHARE = 1.1
_KEPT_UP = 0.95
_UNITS_BETWEEN_PROBES = 12
_NUM_REMEMBERED = 16


class PathRate:
    """The fastest of the latest units, and what to send at because of it.

    A unit shows at most the rate at which it was sent, so now and then one is sent faster than the path is believed
    to be, or the belief could only fall. As long as what is sent faster comes faster, the next one is faster again:
    twice, until the path falls behind for the first time, so that a warm-up that was disturbed costs a few units and
    not the session; later a tenth, and the queue that this makes is a tenth of one chunk.

    Of a unit whose frames were not there in time, the rate shows how fast the engine was, and counts only where it is
    more than was known.

    `link_bytes_per_s` is the rate of the link where it is known: no more than `PACED_SHARE` of it is used.
    """

    def __init__(self, link_bytes_per_s: int | None = None) -> None:
        self._most = inf if link_bytes_per_s is None else link_bytes_per_s * PACED_SHARE
        self._rates: deque[int] = deque(maxlen=_NUM_REMEMBERED)
        self._sent_at: dict[int, int] = {}
        self._probed_share = _FIRST_SHARE
        self._units_to_probe = 0

    @property
    def bytes_per_s(self) -> int | None:
        """Rate of the path; None before anything was told."""
        return max(self._rates, default=None)

    def bytes_per_s_now(self) -> int | None:
        """Return the bytes per second to send the next unit at; None: as fast as it goes."""
        share = PACED_SHARE if self._units_to_probe else self._probed_share
        wanted = min(self._most, inf if self.bytes_per_s is None else self.bytes_per_s * share)
        return None if isinf(wanted) else max(1, round(wanted))

    def sent(self, unit: int, *, is_gapless: bool) -> None:
        """Hear that the last frame of `unit` left, and whether all of them followed each other."""
        sent_at = self.bytes_per_s_now()
        if is_gapless and sent_at is not None:
            self._sent_at[unit] = sent_at
        for old in list(self._sent_at)[:-_NUM_REMEMBERED]:  # what is not told of by now was dropped on the way
            del self._sent_at[old]

    def learn(self, arrived: Arrived) -> None:
        """Hear from the other end how fast a unit came."""
        sent_at = self._sent_at.pop(arrived.unit, None)
        if arrived.unit == WARM_UP or sent_at is not None or arrived.bytes_per_s > (self.bytes_per_s or 0):
            self._rates.append(arrived.bytes_per_s)
        if sent_at is None:
            return
        self._units_to_probe = max(0, self._units_to_probe - 1)
        if arrived.bytes_per_s < sent_at * _KEPT_UP:
            self._probed_share = _PROBED_SHARE
            self._units_to_probe = _UNITS_BETWEEN_PROBES
