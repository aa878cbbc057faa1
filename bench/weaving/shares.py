"""The machine that is measured on, in shares: runs that would disturb each other are not at work together.

Knows how much of two cores a run takes. Does not know what is measured.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from weaving.places import Place

NUM_SHARES = 4
FAR_KM = 3000.0
"""From here on an emulated mesh sleeps most of the time, and two of them do not disturb each other."""
FARTHEST_KM = 10_000.0
"""From here on it takes between a tenth and a half of a core, by its load: four different loads have room."""


@dataclass(slots=True)
class Machine:
    """Who is at work takes shares; who needs more than are free waits."""

    _free: int = NUM_SHARES
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def share(self, num_shares: int) -> AsyncIterator[None]:
        """Hold so many shares for the time of the block."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= num_shares)
            self._free -= num_shares
        try:
            yield
        finally:
            async with self._changed:
                self._free += num_shares
                self._changed.notify_all()


def shares_of(place: Place, *, is_pinned: bool) -> int:
    """Return what runs at `place` take: half or a quarter where the site is far.

    All where engines compute, where a step is back soon, and in one place.
    """
    if is_pinned or place.distance_km is None or place.distance_km < FAR_KM:
        return NUM_SHARES
    return NUM_SHARES // 2 if place.distance_km < FARTHEST_KM else NUM_SHARES // 4
