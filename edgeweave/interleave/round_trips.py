"""The round trip of the lanes, from the steps that use them.

A step is away from its first frame up to its last frame down; the cloud ran it for a part of that. The rest is the
trip and what the step waited for in the cloud. The shortest rest of the last steps is a trip without a wait. Knows
step numbers and microseconds; needs no clock that two sides share.
"""

from collections import deque
from dataclasses import dataclass, field

RECENT = 64
"""A link that became longer is noticed after so many steps; one that became shorter, at once."""


@dataclass(slots=True)
class RoundTrips:
    """`opened_us` is what the warm-up of the lanes measured; it counts until a step is known."""

    opened_us: int = 0
    _away_us: dict[int, int] = field(default_factory=dict)
    _inside_us: dict[int, int] = field(default_factory=dict)
    _parts_us: dict[int, int] = field(default_factory=dict)
    _recent_us: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))

    @property
    def shortest_us(self) -> int:
        """Shortest round trip of late; 0: none is known."""
        return min(self._recent_us, default=self.opened_us)

    def take_away(self, step: int, away_us: int) -> None:
        """The edge says how long a step was away."""
        self._away_us[step] = away_us
        self._join(step)

    def take_inside(self, step: int, inside_us: int, *, is_over: bool = True) -> None:
        """The cloud says for how long it ran a step, or a part of it; the last one `is_over`."""
        self._parts_us[step] = self._parts_us.get(step, 0) + inside_us
        if is_over:
            self._inside_us[step] = self._parts_us.pop(step)
            self._join(step)

    def _join(self, step: int) -> None:
        if step in self._away_us and step in self._inside_us:
            self._recent_us.append(max(1, self._away_us.pop(step) - self._inside_us.pop(step)))
        for half in (self._away_us, self._inside_us, self._parts_us):
            while len(half) > RECENT:
                del half[next(iter(half))]  # its other half never came: the step failed
