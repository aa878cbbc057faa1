"""The bound of a cell from the times of its own runs."""

import pytest

from edgeweave.client.mesh_state import UnitSum
from edgeweave.sim.load import Arrival, Load
from fakes.bench_runs import answer, fused_place_run, one_place_run, split_run
from weaving.bounds import decode_return_us, fuses, one_place_times, place_bound, place_times, place_work
from weaving.loads import BenchLoad, Steady
from weaving.step_times import StepTimes

ANSWERS = [answer(0, 1, 2)]


def _load(*, num_output_tokens: int, steady: Steady = Steady.REPLENISHED) -> BenchLoad:
    """Four requests of 100 prompt tokens, two sequences in a step."""
    return BenchLoad("A", "some", Load("A", (Arrival(0, 100, num_output_tokens),) * 4), 2, steady)


def test_work_is_prefill_and_steps_at_full_batch() -> None:
    """40 later tokens are 20 steps of two rows, however many steps the run itself took."""
    times = place_times([one_place_run(ANSWERS, prefill_us=4_000, steps=(30, 3_000))])
    assert times.work_us(_load(num_output_tokens=11)) == 4_000 + 20 * 100
    costs = times.costs(_load(num_output_tokens=11))
    assert (costs.prompt_token_us, costs.later_token_us) == (10, 50)


def test_several_runs_count_together() -> None:
    runs = [one_place_run(ANSWERS, prefill_us=us, steps=(10, us)) for us in (1_000, 3_000)]
    assert place_times(runs).work_us(_load(num_output_tokens=11)) == 2_000 + 20 * 200


def test_prefill_counts_as_the_plan_that_cuts_it_least_runs_it() -> None:
    """The bound is that of every order: what an order adds by short segments is its own loss."""
    few, many = (split_run(ANSWERS, variant=str(us), prefill_us=us, steps=(10, 500)) for us in (1_000, 1_600))
    assert place_times([few, many]).prefill_us == 1_000


def test_a_step_is_away_for_round_trip_turnaround_and_transfer() -> None:
    run = split_run(ANSWERS, prefill_us=1_000, steps=(20, 2_000), turnarounds=(20, 600), rtt_us=500)
    assert decode_return_us(_load(num_output_tokens=11), [run]) == 530


@pytest.mark.parametrize(("rtt_us", "ratio"), [(0, 6_000 / 5_000), (150, 6_000 / 5_000), (250, 6_000 / 7_000)])
def test_bound_of_a_mixed_load(rtt_us: int, ratio: float) -> None:
    """Each of 20 steps has 150 us of prefill to cover its return; what is longer leaves a bubble a step."""
    load = _load(num_output_tokens=11)
    base = place_times([one_place_run(ANSWERS, prefill_us=4_000, steps=(20, 2_000))])
    run = split_run(ANSWERS, prefill_us=3_000, steps=(20, 2_000), rtt_us=rtt_us)
    assert place_work(load, base, [run]).least_bubbles_us == 20 * max(0, rtt_us - 150)
    assert place_bound(load, base, [run]) == pytest.approx(ratio)


def test_bound_without_decode_is_the_ratio_of_work() -> None:
    load = _load(num_output_tokens=1, steady=Steady.PREFILL)
    base = place_times([one_place_run(ANSWERS, prefill_us=4_000, steps=(0, 0))])
    run = split_run(ANSWERS, prefill_us=3_200, steps=(0, 0), turnarounds=(0, 0), rtt_us=10_000)
    assert place_bound(load, base, [run]) == pytest.approx(1.25)


def test_bound_of_decode_alone_takes_the_best_number_of_groups() -> None:
    """One group: 100 + 100 us a round; two groups of one row each, 70 us: 170 us. One place: 120."""
    load = _load(num_output_tokens=11, steady=Steady.DECODE)
    base = place_times([one_place_run(ANSWERS, prefill_us=0, steps=(20, 2_400))])
    run = split_run(ANSWERS, prefill_us=0, steps=(20, 2_000), rtt_us=100)
    run.steps[1] = UnitSum(20, 1_400)
    assert StepTimes(run.steps).step_us(1) == 70
    assert place_bound(load, base, [run]) == pytest.approx(120 / 170)


def test_work_of_one_place_in_which_rows_ride_is_what_it_took() -> None:
    """Its prefill and its steps cannot be told apart; what they take by themselves comes from the other plans."""
    apart = one_place_run(ANSWERS, prefill_us=4_000, steps=(20, 2_000))
    fused = fused_place_run(ANSWERS)
    assert (fuses(fused), fuses(apart)) == (True, False)
    times = one_place_times([fused], [apart, fused])
    load = _load(num_output_tokens=11)
    assert times.work_us(load) == 4_600
    assert (times.prefill_us, times.apart_us(load)) == (4_000, 6_000)
    assert one_place_times([apart], [apart, fused]) == place_times([apart, apart])


@pytest.mark.parametrize(("rtt_us", "least_us"), [(0, 3_000), (50, 3_000), (51, 3_020), (150, 5_000)])
def test_bound_of_a_load_whose_rows_may_ride(rtt_us: int, least_us: int) -> None:
    """20 steps of 100 us and 3 ms of prefill: the longer of all prefill, and of all steps with their returns."""
    load, fused = _load(num_output_tokens=11), fused_place_run(ANSWERS)
    times = one_place_times([fused], [one_place_run(ANSWERS, prefill_us=4_000, steps=(20, 2_000)), fused])
    run = split_run(ANSWERS, prefill_us=3_000, steps=(20, 2_000), rtt_us=rtt_us)
    assert place_bound(load, times, [run]) == pytest.approx(4_600 / least_us)
