"""How fast the path to the other end of a lane is, learned from how fast units came out there.

Knows what the other end told, and what units were sent at. Does not know time.
"""

from collections import deque
from dataclasses import dataclass
from math import inf, isinf
from statistics import median_low

from edgeweave.wire.frames import WARM_UP, Arrived

PACED_SHARE = 0.9
"""Share of the rate that is used, so that no queue grows in front of the link."""

_FIRST_SHARE = 2.0
_PROBED_SHARE = 1.1
_KEPT_UP = 0.95
_UNITS_BETWEEN_PROBES = 12
_UNITS_UNTIL_SURE = 2
_NUM_PROBES = 5
_NUM_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class _Sent:
    """What a unit was sent at, and whether that was to see what the path carries."""

    bytes_per_s: int
    is_probe: bool


class PathRate:
    """What the path carries by the latest probes, and what to send at because of it.

    A unit shows at most the rate at which it was sent, so only one that is sent faster than the path is believed to be
    says what it carries: a probe. The first ones are twice as fast, until the path falls behind for the first time, so
    that a warm-up that was disturbed costs a few units and not the session; later ones a tenth, and the queue that
    this makes is a tenth of one chunk. A host that was busy makes one probe slow and the path not: of the latest
    probes the median counts. The next one comes soon while there are few, when the last was not too fast for the path,
    and when a unit that was no probe came late.

    Of a unit whose frames were not there in time, the rate shows how fast the engine was, and counts only where it is
    more than was known.

    `link_bytes_per_s` is the rate of the link where it is known: no more than `PACED_SHARE` of it is used.
    """

    def __init__(self, link_bytes_per_s: int | None = None) -> None:
        self._most = inf if link_bytes_per_s is None else link_bytes_per_s * PACED_SHARE
        self._rates: deque[int] = deque(maxlen=_NUM_PROBES)
        self._sent: dict[int, _Sent] = {}
        self._fell_behind = False
        self._units_to_probe = 0

    @property
    def bytes_per_s(self) -> int | None:
        """Rate of the path; None before anything was told."""
        return median_low(self._rates) if self._rates else None

    def bytes_per_s_now(self) -> int | None:
        """Return the bytes per second to send the next unit at; None: as fast as it goes."""
        wanted = min(self._most, inf if self.bytes_per_s is None else self.bytes_per_s * self._share)
        return None if isinf(wanted) else max(1, round(wanted))

    def sent(self, unit: int, *, is_gapless: bool) -> None:
        """Hear that the last frame of `unit` left, and whether all of them followed each other."""
        sent_at = self.bytes_per_s_now()
        if is_gapless and sent_at is not None and unit != WARM_UP:
            self._sent[unit] = _Sent(sent_at, is_probe=self._units_to_probe == 0)
        for old in list(self._sent)[:-_NUM_REMEMBERED]:  # what is not told of by now was dropped on the way
            del self._sent[old]

    def learn(self, arrived: Arrived) -> None:
        """Hear from the other end how fast a unit came."""
        sent = self._sent.pop(arrived.unit, None)
        if sent is None:
            if arrived.unit == WARM_UP or arrived.bytes_per_s > (self.bytes_per_s or 0):
                self._start_again(arrived.bytes_per_s)
        elif sent.is_probe:
            self._learn_probe(arrived.bytes_per_s, kept_up=_kept_up(arrived, sent))
        else:
            self._units_to_probe = max(0, self._units_to_probe - 1)
            if not _kept_up(arrived, sent):
                self._units_to_probe = min(self._units_to_probe, _UNITS_UNTIL_SURE)

    @property
    def _share(self) -> float:
        if self._units_to_probe:
            return PACED_SHARE
        return _PROBED_SHARE if self._fell_behind else _FIRST_SHARE

    def _start_again(self, bytes_per_s: int) -> None:
        """Know this rate alone: what was known before is less, from units that showed less."""
        self._rates.clear()
        self._rates.append(bytes_per_s)

    def _learn_probe(self, bytes_per_s: int, *, kept_up: bool) -> None:
        if self._fell_behind:
            self._rates.append(bytes_per_s)
        else:
            self._start_again(bytes_per_s)
        self._fell_behind = self._fell_behind or not kept_up
        is_sure = len(self._rates) == _NUM_PROBES and not kept_up
        if self._fell_behind:
            self._units_to_probe = _UNITS_BETWEEN_PROBES if is_sure else _UNITS_UNTIL_SURE


def _kept_up(arrived: Arrived, sent: _Sent) -> bool:
    return arrived.bytes_per_s >= sent.bytes_per_s * _KEPT_UP
