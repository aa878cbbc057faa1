"""The replay of what engines ran: departures are counted, and a report can do no harm."""

from dataclasses import replace

import pytest

from edgeweave.errors import ProtocolError
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Plan, PlanKind, Rider, Stage, Timeline, UnitRan
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.replay import NUM_PLANS, Replay
from fakes.driven import DrivenScheduler

ONE_P = Plan(plan=1, kind=PlanKind.ONE_P_ONE_D, max_prefills=1, max_steps=1, max_batch_size=8)
TWO_P = Plan(plan=2, kind=PlanKind.TWO_P_ONE_D, max_prefills=2, max_steps=1, max_batch_size=8, next_head_first=True)
SEGMENT = UnitRan(Stage.SEGMENT, 1, 4, 0, 10, prefill_ready=True, decode_ready=True, num_rows=1, num_tokens=1, plan=1,
                  chunk=1)  # fmt: skip
STEP = replace(SEGMENT, stage=Stage.STEP, chunk=None, step=1)
HEAD = replace(SEGMENT, stage=Stage.HEAD, tail_ready=True, decode_ready=False)


def replayed(*units: UnitRan) -> Replay:
    """Replay units under both plans."""
    replay = Replay()
    replay.remember(ONE_P)
    replay.remember(TWO_P)
    for unit in units:
        replay.observe(unit)
    return replay


def test_an_engine_that_follows_the_rules_departs_nowhere() -> None:
    """L16: prefill first on a cold start, then in turns."""
    assert replayed(SEGMENT, STEP, SEGMENT, STEP).num_departures == 0


def test_each_unit_that_another_rule_chose_is_counted() -> None:
    """Two segments in a row while a step was ready; decode on a cold start."""
    assert replayed(SEGMENT, SEGMENT).num_departures == 1
    assert replayed(STEP).num_departures == 1


def test_a_unit_is_replayed_under_the_plan_that_its_engine_followed() -> None:
    """L12: the same head before a tail is right under 2p1d and a departure under 1p1d."""
    assert replayed(replace(HEAD, plan=2)).num_departures == 0
    assert replayed(replace(HEAD, plan=1)).num_departures == 1


def test_a_plan_that_was_never_sent_is_an_error_with_both_numbers() -> None:
    """An engine cannot follow what nobody told it."""
    with pytest.raises(ProtocolError, match="a unit ran under plan 9, and the newest that was sent is 2"):
        replayed(replace(SEGMENT, plan=9))


def test_a_plan_that_is_forgotten_is_not_counted() -> None:
    """However often an operator sets the plan, a report that is late does no harm."""
    scheduler = DrivenScheduler().connect()
    first = scheduler.core.plan.plan
    for _ in range(NUM_PLANS):
        scheduler.tell(PlanRequest(PlanKind.ONE_P_ONE_D))
    assert first not in scheduler.session.replay.plans
    scheduler.said(Side.CLOUD, Timeline((replace(STEP, plan=first),), (), idle_us=0, clock_us=10))
    assert scheduler.endings == []
    assert scheduler.session.replay.num_departures == 0


def test_an_unknown_plan_in_a_report_ends_the_session() -> None:
    """A peer that breaks a rule ends the session, never the scheduler."""
    scheduler = DrivenScheduler().connect()
    scheduler.said(Side.CLOUD, Timeline((replace(STEP, plan=99),), (), idle_us=0, clock_us=10))
    assert scheduler.endings == ["a unit ran under plan 99, and the newest that was sent is 2"]


def test_fused_units_are_replayed_from_what_was_ready() -> None:
    """A step that rides, one that boards, and one that does neither although its plan says so."""
    plan = replace(TWO_P, plan=3, may_fuse=True)
    fused = replace(SEGMENT, stage=Stage.FUSED_SEGMENT, plan=3, rider=Rider(1, 1, 1))
    boarding = replace(STEP, stage=Stage.BOARDING, plan=3, ride_layers=2)
    replay = replayed()
    replay.remember(plan)
    for ran in (fused, boarding, replace(fused, ride_layers=2, step_layers=2)):
        replay.observe(ran)
    assert replay.num_departures == 0
    replay.observe(replace(STEP, plan=3))
    assert replay.num_departures == 1
    replay.observe(replace(fused, plan=1))
    assert replay.num_departures == 2


def test_a_fused_head_is_replayed_where_one_place_holds_all_layers() -> None:
    """A turnaround and a head that are ready go in one; tails go before."""
    replay = Replay(holds_body=True)
    replay.remember(replace(TWO_P, plan=3, may_fuse=True))
    fused = replace(HEAD, stage=Stage.FUSED_HEAD, plan=3, decode_ready=True, tail_ready=False, rider=Rider(1, 1, 1))
    replay.observe(fused)
    assert replay.num_departures == 0
    replay.observe(replace(fused, tail_ready=True))
    assert replay.num_departures == 1
