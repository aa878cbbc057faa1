"""What a wide-area link does to bytes, as numbers: time on the way, rate, and how unsteady both are.

Knows fibre and bandwidth-delay products. Does not know sockets, loss, or packet headers.
"""

import math
from dataclasses import dataclass

NS_PER_KM = 4_900
"""Time of light in a kilometre of fibre."""

_MIN_BUFFER_BYTES = 512 << 10
_PIECE_NS = 100_000
_MIN_PIECE_BYTES = 4 << 10
_MAX_PIECE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class LinkProfile:
    """One-way delay and rate, the same in both directions.

    Each piece of content travels up to `jitter_ns` longer, at random, but never overtakes. Now and then, at random,
    `stalls_per_s` times a second on average, nothing leaves for `stall_ns` on average.
    """

    delay_ns: int
    bytes_per_s: int
    jitter_ns: int = 0
    stalls_per_s: float = 0.0
    stall_ns: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that describe no link."""
        if self.delay_ns < 0:
            raise ValueError(f"a link cannot take {self.delay_ns} ns; give a delay of at least 0")
        if self.bytes_per_s < 1:
            raise ValueError(f"a link cannot carry {self.bytes_per_s} bytes/s; give a rate above 0")
        if min(self.jitter_ns, self.stalls_per_s, self.stall_ns) < 0:
            raise ValueError("a link cannot be steadier than steady; give jitter and stalls of at least 0")
        if self.stalls_per_s * self.stall_ns >= 1e9:  # noqa: PLR2004 (a second)
            raise ValueError(
                f"{self.stalls_per_s:g} stalls/s of {self.stall_ns / 1e6:g} ms leave no time to send; give fewer"
            )

    @classmethod
    def of_distance(cls, distance_km: float, *, gbit_per_s: float) -> "LinkProfile":
        """Return the steady link over so much fibre."""
        return cls.of_delay(distance_km * NS_PER_KM / 1e6, gbit_per_s=gbit_per_s)

    @classmethod
    def of_delay(cls, delay_ms: float, *, gbit_per_s: float) -> "LinkProfile":
        """Return the steady link with this one-way delay."""
        if not (math.isfinite(delay_ms) and math.isfinite(gbit_per_s)):
            raise ValueError(f"a link of {delay_ms} ms and {gbit_per_s} Gbit/s cannot be; give finite numbers")
        return cls(delay_ns=round(delay_ms * 1e6), bytes_per_s=round(gbit_per_s * 1e9 / 8))

    @property
    def buffer_bytes(self) -> int:
        """Bytes that wait in front of the link at most: one bandwidth-delay product of the round trip."""
        return max(_MIN_BUFFER_BYTES, 2 * self.delay_ns * self.bytes_per_s // 1_000_000_000)

    @property
    def piece_bytes(self) -> int:
        """Bytes that cross as one piece: few enough that their own transmission delays nothing noticeably."""
        return min(_MAX_PIECE_BYTES, max(_MIN_PIECE_BYTES, self.bytes_per_s * _PIECE_NS // 1_000_000_000))

    def transmission_ns(self, num_bytes: int) -> int:
        """Return how long the link is taken by `num_bytes`."""
        return num_bytes * 1_000_000_000 // self.bytes_per_s
