"""What to run for a case, what it loses, and how far it carries.

Knows how arithmetic and simulation are put together. Does not know how the answer is shown.
"""

from dataclasses import dataclass

from edgeweave.interleave.nouns import PlanKind
from edgeweave.interleave.plans import DEFAULT_NUM_SEGMENTS
from edgeweave.sim.case import Case
from edgeweave.sim.ceiling import Ceiling
from edgeweave.sim.reach import FARTHEST_KM, reach_km
from edgeweave.sim.run import Outcome
from edgeweave.sim.trials import OnRun, Trial, choose, covering_segments, recuts, try_all, try_plan


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The plan to take for a case.

    `one_place` is the same model without a link, `ceiling` what no plan exceeds at this distance. `reach_km` is the
    longest simulated distance at which `chosen` loses at most `max_loss`, `ceiling_km` the longest for any order of
    work; `None` where not even distance 0 keeps that.
    """

    case: Case
    max_loss: float
    one_place: Outcome
    ceiling: Ceiling
    trials: tuple[Trial, ...]
    chosen: Trial
    reach_km: int | None
    ceiling_km: int | None

    @property
    def loss(self) -> float:
        """Share of one place's throughput that is lost; below 0 where the split is faster."""
        return 1.0 - self.chosen.ratio

    @property
    def least_loss(self) -> float:
        """Share that is lost under every order of work."""
        return 1.0 - self.ceiling.ratio

    @property
    def is_adaptive(self) -> bool:
        """Whether counts and cuts are set while serving."""
        return self.chosen.plan.kind is PlanKind.ADAPTIVE

    @property
    def num_segments(self) -> int:
        """Segments of a chunk; where they are set while serving, as many as cover a decode return each."""
        if self.is_adaptive:
            return covering_segments(self.case)
        return min(self.chosen.plan.num_segments or DEFAULT_NUM_SEGMENTS, self.case.profile.body_layers)

    @property
    def segment_layers(self) -> int:
        """Layers of the longest of these segments."""
        return -(-self.case.profile.body_layers // self.num_segments)

    @property
    def prefill_needed_us(self) -> float:
        """Prefill in the cloud for each decode step that hides the distance: the decode return."""
        return self.ceiling.decode_return_us

    @property
    def prefill_had_us(self) -> float | None:
        """Prefill in the cloud that the load has for each full decode step; `None` where nothing decodes."""
        demand = self.case.demand
        return demand.body_prefill_us / demand.num_steps() if demand.num_steps() else None

    @property
    def link_mbit_per_s(self) -> float:
        """Hidden states on the link each way, on average over the run."""
        return self.case.demand.link_bytes * 8 / self.chosen.outcome.wall_us


def recommend(case: Case, *, max_loss: float, on_run: OnRun) -> Recommendation:
    """Simulate what arithmetic leaves open for `case`, and return what to take. `on_run` hears of each simulation.

    Raises:
        InvalidRequestError: a request of the load can never be served within the limits.
    """
    on_run("one place")
    one_place = case.simulate_one_place()
    trials = try_all(case, one_place, on_run=on_run)
    chosen = choose(trials)
    ceiling_km = reach_km(lambda km: case.at(km).ceiling.ratio >= 1.0 - max_loss)
    return Recommendation(
        case=case,
        max_loss=max_loss,
        one_place=one_place,
        ceiling=case.ceiling,
        trials=trials,
        chosen=chosen,
        reach_km=_simulated_reach_km(case, chosen, one_place, max_loss=max_loss, ceiling_km=ceiling_km, on_run=on_run),
        ceiling_km=ceiling_km,
    )


def _simulated_reach_km(
    case: Case, chosen: Trial, one_place: Outcome, *, max_loss: float, ceiling_km: int | None, on_run: OnRun
) -> int | None:
    """Return how far `chosen` carries, its chunks cut anew for each distance."""

    def holds(distance_km: float) -> bool:
        there = case.at(distance_km)
        trials = (try_plan(there, plan, one_place, on_run=on_run) for plan in recuts(there, chosen.plan))
        return any(trial.ratio >= 1.0 - max_loss for trial in trials)

    farthest_km = FARTHEST_KM if ceiling_km is None else ceiling_km
    if chosen.ratio >= 1.0 - max_loss:
        return reach_km(holds, nearest_km=case.distance_km, farthest_km=max(farthest_km, case.distance_km))
    return reach_km(holds, farthest_km=min(farthest_km, case.distance_km))
