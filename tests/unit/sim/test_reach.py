"""The longest distance that holds, found by halving."""

import pytest

from edgeweave.sim.reach import FARTHEST_KM, GRID_KM, reach_km


@pytest.mark.parametrize("border_km", [0, 49, 50, 51, 1234, 19_999, 20_000])
def test_the_last_distance_of_the_grid_within_the_border(border_km: int) -> None:
    assert reach_km(lambda km: km <= border_km) == border_km // GRID_KM * GRID_KM


def test_what_never_holds_reaches_nowhere() -> None:
    assert reach_km(lambda _: False) is None


def test_few_distances_are_asked() -> None:
    """Each may be a simulation."""
    asked: list[float] = []

    def holds(distance_km: float) -> bool:
        asked.append(distance_km)
        return distance_km <= 3210

    assert reach_km(holds) == 3200
    assert len(asked) <= 12


def test_the_search_stays_between_its_ends() -> None:
    assert reach_km(lambda _: True, nearest_km=1010, farthest_km=2020) == 2000
    assert reach_km(lambda _: True) == FARTHEST_KM
    assert reach_km(lambda km: km == 1000, nearest_km=1000, farthest_km=1000) == 1000
