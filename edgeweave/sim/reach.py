"""How far away the cloud may be before more than an accepted share of throughput is lost.

Knows distances. Does not know plans or ratios: whether a distance is near enough is asked.
"""

from collections.abc import Callable

FARTHEST_KM = 20_000
"""No two places on Earth are farther apart."""
GRID_KM = 50
"""Distances are tried in steps of this: half a millisecond of round trip."""


def reach_km(holds: Callable[[float], bool], *, nearest_km: float = 0, farthest_km: float = FARTHEST_KM) -> int | None:
    """Return the longest distance of the grid that holds, between `nearest_km` and `farthest_km`.

    What holds at a distance is taken to hold nearer too; `None` where not even the nearest does.
    """
    near, far = int(nearest_km // GRID_KM), int(farthest_km // GRID_KM)
    if not holds(near * GRID_KM):
        return None
    if holds(far * GRID_KM):
        return far * GRID_KM
    while far - near > 1:
        middle = (near + far) // 2
        if holds(middle * GRID_KM):
            near = middle
        else:
            far = middle
    return near * GRID_KM
