"""What the ceiling and each plan give over distance, for a picture.

Knows which distances are simulated. Does not draw.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest
from edgeweave.sim.recommend import Recommendation
from edgeweave.sim.trials import OnRun, plan_name, recuts, try_plan

SIMULATED_KM = (0, 1_000, 2_000, 3_000, 5_000, 7_500, 10_000)
DRAWN_UP_TO_KM = 10_000
CEILING_EVERY_KM = 100


@dataclass(frozen=True, slots=True)
class Curve:
    """Ratios to one place at ascending distances."""

    name: str
    distances_km: tuple[float, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """The ceiling, the recommended plan cut anew for each distance, and the other plans as they come."""

    ceiling: Curve
    chosen: Curve
    others: tuple[Curve, ...]


def draw_up(found: Recommendation, *, on_run: OnRun) -> Curves:
    """Simulate all plans over distance."""
    others = [PlanRequest(kind) for kind in PLAN_NAMES.values() if kind is not found.chosen.plan.kind]
    return Curves(
        ceiling=_ceiling(found),
        chosen=_curve(found, found.chosen.plan, is_recut=True, on_run=on_run),
        others=tuple(_curve(found, plan, is_recut=False, on_run=on_run) for plan in others),
    )


def _ceiling(found: Recommendation) -> Curve:
    distances_km = tuple(range(0, DRAWN_UP_TO_KM + 1, CEILING_EVERY_KM))
    return Curve("ceiling", distances_km, tuple(found.case.at(km).ceiling.ratio for km in distances_km))


def _curve(found: Recommendation, plan: PlanRequest, *, is_recut: bool, on_run: OnRun) -> Curve:
    def ratios_at(distance_km: float) -> Iterator[float]:
        case = found.case.at(distance_km)
        for cut in recuts(case, plan) if is_recut else (plan,):
            yield try_plan(case, cut, found.one_place, on_run=on_run).ratio

    distances_km = sorted({*SIMULATED_KM, min(found.case.distance_km, DRAWN_UP_TO_KM)})
    return Curve(plan_name(plan), tuple(distances_km), tuple(max(ratios_at(km)) for km in distances_km))
