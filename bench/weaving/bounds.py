"""The bound of a place: the most that the split could give there, from step times of the same runs.

Knows which units make up the work of each place. The formula is in `edgeweave.sim.bounds`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from edgeweave.interleave.nouns import Stage
from edgeweave.sim.bounds import Work, bound, decode_only_bound, fused_bound
from weaving.loads import BenchLoad, Steady
from weaving.run import Run
from weaving.steady import Costs
from weaving.step_times import StepTimes, merged

_IN_ONE_PLACE = (Stage.HEAD, Stage.TAIL, Stage.FUSED_HEAD)


@dataclass(frozen=True, slots=True)
class PlaceTimes:
    """What a load takes on the engine that has the body, when nothing waits: all its prefill, and steps by rows.

    `fused_us` is what all of it took where rows ride in prefill, thin batches included; `None` where they do not.
    """

    prefill_us: float
    steps: StepTimes
    fused_us: float | None = None

    def work_us(self, load: BenchLoad) -> float:
        """Return the time of the whole load, as it was where rows ride, else apart."""
        return self.apart_us(load) if self.fused_us is None else self.fused_us

    def apart_us(self, load: BenchLoad) -> float:
        """Return the time of all prefill and of all steps, each by itself and every step at full batch."""
        if not load.num_later_tokens:
            return self.prefill_us
        num_steps = load.num_later_tokens / load.max_batch_size
        return self.prefill_us + num_steps * self.steps.step_us(load.max_batch_size)

    def costs(self, load: BenchLoad) -> Costs:
        """Return what a token takes."""
        later_us = self.steps.step_us(load.max_batch_size) / load.max_batch_size if load.num_later_tokens else 0.0
        return Costs(self.prefill_us / load.num_prompt_tokens, later_us)


def place_times(runs: Sequence[Run]) -> PlaceTimes:
    """Return the times of the engine that has the body, over runs of one load at one place.

    Prefill takes what it takes under the plan that cuts it least: more cuts are a loss of the order, not of the split.
    It takes that apart from decode, so plans under which rows ride in it are left out, unless there are no others.
    """
    stages = (Stage.SEGMENT, Stage.FUSED_SEGMENT) if runs[0].key.place.is_split else _IN_ONE_PLACE
    by_variant: dict[str, list[int]] = {}
    for run in [run for run in runs if not fuses(run)] or runs:
        by_variant.setdefault(run.key.variant, []).append(run.use.body.stage_us(*stages))
    return PlaceTimes(
        min(mean(times_us) for times_us in by_variant.values()), StepTimes(merged(*(run.steps for run in runs)))
    )


def one_place_times(base: Sequence[Run], trials: Sequence[Run]) -> PlaceTimes:
    """Return the times of one place, from runs of one of its plans and from a trial of each.

    Where rows ride under this plan, what prefill and steps take apart comes from the others.
    """
    if not any(fuses(run) for run in base):
        return place_times([*base, *(run for run in trials if run.key.variant == base[0].key.variant)])
    return replace(place_times([*base, *trials]), fused_us=mean(run.use.body.busy_us for run in base))


def fuses(run: Run) -> bool:
    """Whether rows rode in prefill in this run."""
    return run.use.body.stage_us(Stage.FUSED_SEGMENT, Stage.FUSED_HEAD) > 0


def place_bound(load: BenchLoad, one_place: PlaceTimes, runs: Sequence[Run]) -> float:
    """Return the highest ratio to one place for any order, from all runs of the split at one place.

    Beside a plan of one place under which rows ride in prefill it is that of orders in which they may, else of those in
    which they do not.
    """
    if load.steady is not Steady.DECODE:
        may_ride = one_place.fused_us is not None
        return (fused_bound if may_ride else bound)(place_work(load, one_place, runs))
    batch = load.max_batch_size
    return decode_only_bound(
        one_place.steps.step_us(batch),
        place_times(runs).steps.step_us,
        num_rows=batch,
        decode_return_us=decode_return_us(load, runs),
    )


def place_work(load: BenchLoad, one_place: PlaceTimes, runs: Sequence[Run]) -> Work:
    """Return what the load takes here and in one place, when nothing waits."""
    cloud = place_times(runs)
    return Work(
        centralized_us=one_place.work_us(load),
        body_us=cloud.apart_us(load),
        body_prefill_us=cloud.prefill_us,
        num_steps=load.num_later_tokens / load.max_batch_size,
        decode_return_us=decode_return_us(load, runs) if load.num_later_tokens else 0.0,
    )


def decode_return_us(load: BenchLoad, runs: Sequence[Run]) -> float:
    """Return how long a step of a full batch is outside the cloud: the shortest trip of steps, and a turnaround.

    The trip is that of real steps: delay and transfer of the link, and what both ends take to send and receive.
    """
    turnarounds = StepTimes(merged(*(run.use.edge.rows(Stage.TURNAROUND) for run in runs)))
    return mean(run.use.rtt_us for run in runs) + turnarounds.step_us(load.max_batch_size)
