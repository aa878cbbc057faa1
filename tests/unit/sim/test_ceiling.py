"""Arithmetic of a load: what it asks of cloud, site and link, and the most that it can reach."""

from dataclasses import replace

import pytest

from edgeweave.sim.ceiling import Limit
from edgeweave.sim.demand import Demand
from edgeweave.sim.profile import LayerTimes
from fakes.cases import ROUND, alike, case_of

WOVEN = alike(8, prompt_tokens=90, output_tokens=5, max_open=4)
"""Eight prompts of 8 ms in the body, and 8 x 4 / 4 = 8 steps of 8 ms: one prompt a step."""
DECODE = alike(4, prompt_tokens=1, output_tokens=101)


def test_sums_of_a_load() -> None:
    """Steps are full, the first token of an output is prefill's, and every token but the last crosses the link."""
    demand = case_of(WOVEN).demand
    assert demand.num_steps() == 8
    assert demand.body_prefill_us == 8 * 8 * (100 + 90 * 10)
    assert demand.body_us(num_groups=1) == 64_000 + 8 * 8_000
    assert demand.centralized_us == 8 * 10_000 + 8 * 10_000
    assert demand.edge_us(num_groups=1) == 8 * 2 * (50 + 90) + 8 * 2 * 50
    assert demand.link_bytes == (8 * 90 + 8 * 4) * 1000


def test_a_long_prompt_is_many_chunks() -> None:
    """Each pays the fixed time of its layers."""
    demand = case_of(alike(1, prompt_tokens=1025, output_tokens=1)).demand
    assert demand.num_chunks == 3
    assert demand.body_prefill_us == 8 * (3 * 100 + 1025 * 10)


def test_prefill_that_covers_the_return_hides_the_link() -> None:
    """A step is away for 8 ms at most and there are 8 ms of prefill: what is left is the site's share of the work."""
    ceiling = case_of(WOVEN, distance_km=750).ceiling  # 2 x 3.675 ms, 2 x 4 us of transfer, 0.1 ms of turnaround
    assert ceiling.decode_return_us == pytest.approx(2 * (3675 + 4) + 100)
    assert ceiling.limit is Limit.CLOUD
    assert ceiling.ratio == pytest.approx(160 / 128)


def test_what_prefill_leaves_uncovered_is_lost() -> None:
    """One group: 8 steps wait for what the return has over 8 ms of prefill."""
    case = case_of(WOVEN, distance_km=1000)
    ceiling = case.ceiling
    return_us = 2 * (4900 + 4) + 100
    assert ceiling.limit is Limit.DECODE_RETURN
    assert ceiling.num_groups == 1
    assert ceiling.ratio == pytest.approx(160_000 / (128_000 + 8 * (return_us - 8000)))


def test_far_away_groups_pay() -> None:
    """Eight are open and four fit into a step: a second group steps while the first one is away."""
    load = alike(8, prompt_tokens=1, output_tokens=101)
    ceiling = case_of(load, distance_km=10_000).ceiling
    step_us, return_us, prefill_us = 8000, 2 * (49_000 + 4) + 100, 8 * 8 * 110
    assert ceiling.num_groups == 2
    bubbles_us = 100 * (return_us - step_us) - prefill_us
    centralized_us = 200 * 10_000 + 8 * 10 * 110
    assert ceiling.ratio == pytest.approx(centralized_us / (200 * step_us + prefill_us + bubbles_us), rel=1e-3)


def test_groups_that_share_a_full_step_gain_nothing_where_rows_cost_nothing() -> None:
    """Then a step of half the rows takes as long, and all have gone round no sooner."""
    assert case_of(DECODE, distance_km=10_000).ceiling.num_groups == 1


def test_open_requests_beyond_a_full_step_fill_another_group() -> None:
    """Four in a step and eight open: a second group costs no thinner step, a third one does."""
    demand = case_of(alike(8, prompt_tokens=1, output_tokens=101, max_open=8)).demand
    assert demand.num_steps(num_groups=2) == demand.num_steps(num_groups=1)
    assert demand.group_rows(3) == 3
    assert demand.num_rounds(3) == demand.num_rounds(2)


def test_farther_is_never_better() -> None:
    ratios = [case_of(WOVEN, distance_km=km).ceiling.ratio for km in range(0, 10_001, 100)]
    assert ratios == sorted(ratios, reverse=True)


def test_a_thin_link_is_the_limit() -> None:
    """752,000 bytes each way at a byte a microsecond take 752 ms of what one place does in 160."""
    ceiling = case_of(WOVEN, gbit_per_s=0.008).ceiling
    assert ceiling.limit is Limit.LINK
    assert ceiling.ratio == pytest.approx(160 / 752)


def test_a_slow_site_is_the_limit() -> None:
    case = replace(case_of(WOVEN), profile=replace(ROUND, edge=LayerTimes(50, 0, 0, 1000)))
    assert case.ceiling.limit is Limit.EDGE
    assert case.ceiling.ratio == pytest.approx(160_000 / (8 * 90 * 2 * 1000 + 8 * 2 * 50))


def test_a_load_that_decodes_nothing_has_no_steps() -> None:
    demand: Demand = case_of(alike(3, prompt_tokens=10, output_tokens=1)).demand
    assert demand.num_steps() == 0
    assert case_of(alike(3, prompt_tokens=10, output_tokens=1), distance_km=10_000).ceiling.limit is Limit.CLOUD
