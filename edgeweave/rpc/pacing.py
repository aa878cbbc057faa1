"""The pacing of one end of the prefill lane: what it sends leaves no faster than the path to the other end is.

A queue in front of the link is one that decode stands in too, whatever connection it has. So each end measures how
units come and tells the other, which sends at a little less than the path is able to carry.

Knows the rate, the pace and the clock. Does not know streams, nor how to wait.
"""

from dataclasses import replace
from typing import Protocol

from edgeweave.clock import Clock
from edgeweave.rpc.arrivals import Arrivals
from edgeweave.rpc.pace import Pace
from edgeweave.rpc.path_rate import PathRate
from edgeweave.wire.frames import WARM_UP, Arrived, Frame


class Rate(Protocol):
    """What a unit is sent at."""

    def bytes_per_s_now(self) -> int | None:
        """Return bytes per second; None: as fast as it goes."""
        ...

    def sent(self, unit: int, *, is_gapless: bool) -> None:
        """Hear that the last frame of `unit` left, and whether all of them followed each other."""
        ...

    def learn(self, arrived: Arrived) -> None:
        """Hear from the other end how fast a unit came."""
        ...


class FixedRate:
    """A rate that was set, or none at all; nothing is learned."""

    def __init__(self, bytes_per_s: int | None) -> None:
        self._bytes_per_s = bytes_per_s

    def bytes_per_s_now(self) -> int | None:
        """Return the rate that was set."""
        return self._bytes_per_s

    def sent(self, unit: int, *, is_gapless: bool) -> None:
        """Learn nothing."""

    def learn(self, arrived: Arrived) -> None:
        """Learn nothing."""


def rate_of(setting: str, *, link_gbit: float | None = None) -> Rate:
    """Return the rate for a setting: `auto`, `off` or a number of Gbit/s.

    Where the bandwidth of the link is known, `auto` stays below it whatever is learned.
    """
    match setting:
        case "auto":
            return PathRate(None if link_gbit is None else _bytes_per_s(link_gbit))
        case "off":
            return FixedRate(None)
        case _:
            return FixedRate(_bytes_per_s(float(setting)))


def _bytes_per_s(gbit_per_s: float) -> int:
    return round(gbit_per_s * 1e9 / 8)


class Pacing:
    """Decides for each frame of a lane when it may leave. The warm-up is not paced: it is what the rate is known by."""

    def __init__(self, rate: Rate, *, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._pace = Pace()
        self._arrivals = Arrivals()
        self._is_gapless = True

    def wait_us(self, frame: Frame) -> int:
        """Return how long `frame`, the next one, has to wait."""
        return 0 if frame.unit == WARM_UP else self._pace.wait_us(now_us=self._clock.now_us())

    def leaving(self, frame: Frame) -> Frame:
        """Return `frame`, which leaves now, with what is to be told to the other end."""
        bytes_per_s = self._rate.bytes_per_s_now()
        if bytes_per_s is not None:
            self._pace.spend(len(frame.payload), bytes_per_s=bytes_per_s, now_us=self._clock.now_us())
        if frame.row_start == 0:
            self._is_gapless = True
        if frame.row_stop == frame.num_rows:
            self._rate.sent(frame.unit, is_gapless=self._is_gapless)
        arrived = self._arrivals.take()
        return frame if arrived is None else replace(frame, arrived=arrived)

    def ran_dry(self) -> None:
        """Hear that there is no further frame yet."""
        self._is_gapless = False

    def arrived(self, frame: Frame) -> None:
        """Hear of a frame that came from the other end."""
        self._arrivals.add(frame, now_us=self._clock.now_us())
        if frame.arrived is not None:
            self._rate.learn(frame.arrived)
