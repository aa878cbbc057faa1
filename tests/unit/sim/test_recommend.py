"""Recommendations: from arithmetic and a few simulations to a plan, its loss and its reach."""

from collections.abc import Iterator

import pytest

from edgeweave.errors import PromptTooLongError
from edgeweave.interleave.nouns import PlanKind
from edgeweave.interleave.plans import PlanRequest
from edgeweave.sim.ceiling import Limit
from edgeweave.sim.curves import draw_up
from edgeweave.sim.recommend import Recommendation, recommend
from edgeweave.sim.trials import Trial, candidates, choose, covering_segments, recuts
from fakes.cases import ROUND, alike, case_of

DECODE = alike(4, prompt_tokens=4, output_tokens=30)
WOVEN = alike(24, prompt_tokens=90, output_tokens=5, max_open=6)


def silent(_: str) -> None:
    """Hear what is simulated, and say nothing."""


@pytest.fixture(scope="module")
def decode_only() -> Recommendation:
    """A load without prefill to speak of, 1,000 km away."""
    return recommend(case_of(DECODE, distance_km=1000), max_loss=0.05, on_run=silent)


@pytest.fixture(scope="module")
def woven() -> Recommendation:
    """A load with as much prefill as decode, 500 km away."""
    return recommend(case_of(WOVEN, distance_km=500), max_loss=0.05, on_run=silent)


def test_decode_alone_loses_what_arithmetic_says(decode_only: Recommendation) -> None:
    """A step of 10 ms becomes one of 8 and 9.9 ms away; no plan helps, and the report can say why."""
    assert decode_only.ceiling.limit is Limit.DECODE_RETURN
    assert decode_only.least_loss == pytest.approx(1 - 10 / 17.9, abs=0.02)
    assert decode_only.least_loss - 0.005 <= decode_only.loss < decode_only.least_loss + 0.05
    assert decode_only.prefill_had_us is not None
    assert decode_only.prefill_had_us < 0.2 * decode_only.prefill_needed_us


def test_decode_alone_reaches_as_far_as_the_site_saves(decode_only: Recommendation) -> None:
    """8 ms and 2.5 of return are what 5 % over 10 ms allow: 250 km at most."""
    assert decode_only.ceiling_km is not None
    assert 200 <= decode_only.ceiling_km <= 250
    assert decode_only.reach_km is not None
    assert decode_only.reach_km <= decode_only.ceiling_km


def test_prefill_hides_the_distance(woven: Recommendation) -> None:
    """There is more of it than a return takes, and the chosen plan is no worse than any that was tried."""
    assert woven.prefill_had_us is not None
    assert woven.prefill_had_us > woven.prefill_needed_us
    assert woven.ceiling.limit is Limit.CLOUD
    assert woven.chosen.ratio >= 0.99 * max(trial.ratio for trial in woven.trials)
    assert woven.chosen.ratio > next(trial.ratio for trial in woven.trials if trial.name == "serial") + 0.05


def test_the_link_carries_every_row_once_each_way(woven: Recommendation) -> None:
    expected = 24 * (90 + 4) * 1000 * 8 / woven.chosen.outcome.wall_us
    assert woven.link_mbit_per_s == pytest.approx(expected)


def test_reach_agrees_with_the_loss(woven: Recommendation, decode_only: Recommendation) -> None:
    """What is lost at the distance that was asked for decides on which side of it the reach lies."""
    for found in (woven, decode_only):
        keeps = found.loss <= found.max_loss
        assert keeps == (found.reach_km is not None and found.reach_km >= found.case.distance_km)


def test_the_cut_covers_the_body(woven: Recommendation) -> None:
    assert woven.num_segments * woven.segment_layers >= ROUND.body_layers
    assert (woven.num_segments - 1) * woven.segment_layers < ROUND.body_layers


def test_covering_segments_are_as_long_as_a_return() -> None:
    """A layer of 90 tokens takes 1 ms: a return of 4.908 ms needs five of the eight layers, so there is one cut."""
    assert covering_segments(case_of(WOVEN, distance_km=490)) == 1
    assert covering_segments(case_of(WOVEN, distance_km=150)) == 4  # a return of 1.6 ms: two layers
    assert covering_segments(case_of(WOVEN, distance_km=10_000)) == 1


def test_groups_are_tried_only_where_they_can_pay() -> None:
    many = alike(16, prompt_tokens=4, output_tokens=30)
    near, far = (list(candidates(case_of(many, distance_km=km))) for km in (0, 10_000))
    assert {plan.max_steps for plan in near} == {None}
    assert {plan.max_steps for plan in far} == {None, 2, 4}


def test_what_a_plan_may_be_set_to_elsewhere() -> None:
    """Other cuts, and one group; a plan that cuts while serving has nothing to set."""
    case = case_of(WOVEN, distance_km=500)
    fixed = PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=4, max_steps=2)
    assert next(recuts(case, fixed)) == fixed
    assert {plan.num_segments for plan in recuts(case, fixed) if plan.max_steps is None} == {1, 2, 4, 8}
    assert list(recuts(case, PlanRequest(PlanKind.ADAPTIVE))) == [PlanRequest(PlanKind.ADAPTIVE)]


def test_among_equals_the_plan_that_follows_its_load(woven: Recommendation) -> None:
    """A hundredth is no difference; more than that is."""
    outcome = woven.one_place

    def trials(adaptive: float, fixed: float) -> Iterator[Trial]:
        yield Trial(PlanRequest(PlanKind.SERIAL), outcome, 0.5)
        yield Trial(PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=4), outcome, fixed)
        yield Trial(PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=8), outcome, fixed - 0.001)
        yield Trial(PlanRequest(PlanKind.ADAPTIVE), outcome, adaptive)

    assert choose(list(trials(0.995, 1.0))).plan.kind is PlanKind.ADAPTIVE
    assert choose(list(trials(0.95, 1.0))).plan == PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=4)


def test_curves_pass_through_what_was_asked(decode_only: Recommendation) -> None:
    """The advised plan is at least what was simulated at that distance, and the ceiling never rises."""
    curves = draw_up(decode_only, on_run=silent)
    at_asked = dict(zip(curves.chosen.distances_km, curves.chosen.ratios, strict=True))[1000]
    assert at_asked >= decode_only.chosen.ratio
    assert list(curves.ceiling.ratios) == sorted(curves.ceiling.ratios, reverse=True)
    assert {curve.name for curve in curves.others} | {curves.chosen.name} == {"serial", "1p1d", "2p1d", "adaptive"}


def test_a_request_that_never_fits_is_refused() -> None:
    with pytest.raises(PromptTooLongError, match="max_seq_len is 512"):
        recommend(case_of(alike(1, prompt_tokens=600, output_tokens=2)), max_loss=0.05, on_run=silent)
