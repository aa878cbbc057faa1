"""Plans that are worth simulating for a case, what they give, and the one to take.

Knows which counts and cuts arithmetic leaves open. Does not know what an operator is told.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from edgeweave.interleave.nouns import PlanKind
from edgeweave.interleave.plans import PLAN_NAMES, TWO_PREFILLS, PlanRequest
from edgeweave.sim.case import Case
from edgeweave.sim.run import Outcome

CUTS = (2, 4, 8)
"""Segments of a chunk that fixed plans are tried with, beside as many as cover a decode return each."""
FEWEST_GROUPS = 2
"""Decode groups that are tried beside as many as arithmetic favours: each of them costs more than it says."""
AS_GOOD = 0.99
"""Plans whose throughput is at least this share of the best count as equal."""
PREFERRED = (PlanKind.ADAPTIVE, PlanKind.TWO_P_ONE_D, PlanKind.ONE_P_ONE_D, PlanKind.SERIAL)
"""Among equals: the one that follows a load that changes, then the one with more in flight."""

OnRun = Callable[[str], None]
"""Hears what is simulated next."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One plan and what it gave; `ratio` is its throughput over that of one place."""

    plan: PlanRequest
    outcome: Outcome
    ratio: float

    @property
    def name(self) -> str:
        """The plan's name on the command line."""
        return plan_name(self.plan)

    @property
    def max_prefills(self) -> int | None:
        """Chunks in flight; `None` where the plan sets them while it serves."""
        if self.plan.kind is PlanKind.ADAPTIVE:
            return self.plan.max_prefills
        return self.plan.max_prefills or (2 if self.plan.kind in TWO_PREFILLS else 1)

    @property
    def max_steps(self) -> int:
        """Decode groups in flight."""
        return self.plan.max_steps or 1


def plan_name(plan: PlanRequest) -> str:
    """Return the name that stands for the kind of `plan`."""
    return next(name for name, kind in PLAN_NAMES.items() if kind is plan.kind)


def covering_segments(case: Case) -> int:
    """Return how many equal segments a chunk has if each is just long enough to cover a decode return."""
    demand, profile = case.demand, case.profile
    chunk_tokens = demand.num_prompt_tokens / demand.num_chunks
    layer_us = profile.cloud.prefill_fixed_us + chunk_tokens * profile.cloud.prefill_token_us
    num_layers = min(profile.body_layers, max(1, math.ceil(case.ceiling.decode_return_us / layer_us)))
    return profile.body_layers // num_layers


def cuts_of(case: Case) -> list[int]:
    """Return the numbers of segments to try, in ascending order."""
    return sorted(cut for cut in {*CUTS, covering_segments(case)} if cut <= case.profile.body_layers)


def candidates(case: Case) -> Iterator[PlanRequest]:
    """Yield the plans to simulate: more than one decode group only where arithmetic says that it can pay."""
    cuts = cuts_of(case)
    yield PlanRequest(PlanKind.SERIAL)
    for kind in (PlanKind.ONE_P_ONE_D, PlanKind.TWO_P_ONE_D):
        yield from (PlanRequest(kind, num_segments=cut) for cut in cuts)
    yield PlanRequest(PlanKind.ADAPTIVE)
    for num_groups in {FEWEST_GROUPS, case.ceiling.num_groups} if case.ceiling.num_groups > 1 else ():
        yield PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=cuts[-1], max_steps=num_groups)
        yield PlanRequest(PlanKind.ADAPTIVE, max_steps=num_groups)


def try_all(case: Case, one_place: Outcome, *, on_run: OnRun) -> tuple[Trial, ...]:
    """Simulate every candidate."""
    return tuple(try_plan(case, plan, one_place, on_run=on_run) for plan in candidates(case))


def try_plan(case: Case, plan: PlanRequest, one_place: Outcome, *, on_run: OnRun) -> Trial:
    """Simulate one plan."""
    on_run(f"{plan_name(plan)} at {case.distance_km:,.0f} km")
    outcome = case.simulate(plan)
    return Trial(plan, outcome, outcome.tokens_per_s / one_place.tokens_per_s)


def recuts(case: Case, plan: PlanRequest) -> Iterator[PlanRequest]:
    """Yield `plan`, then what else the same kind may be set to at another distance: one decode group, other cuts."""
    yield plan
    if plan.max_steps is not None:
        yield from recuts(case, replace(plan, max_steps=None))
    elif plan.num_segments is not None:
        yield from (replace(plan, num_segments=cut) for cut in cuts_of(case) if cut != plan.num_segments)


def choose(trials: Sequence[Trial]) -> Trial:
    """Return the preferred kind among the trials that count as equal to the best, with the fewest groups."""
    best = max(trial.ratio for trial in trials)
    equals = [trial for trial in trials if trial.ratio >= AS_GOOD * best]
    return min(equals, key=lambda trial: (PREFERRED.index(trial.plan.kind), trial.max_steps, -trial.ratio))
