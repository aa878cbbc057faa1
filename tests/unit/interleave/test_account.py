"""The accounts of both engines under random schedules of the three cores, and proof that a wrong one is caught.

Every schedule of `test_schedules.py` is checked so at its end and wherever a session breaks; here is what that check
is worth.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Bubble, BubbleCause, Timeline
from fakes.account import bubbles_by_cause, check_account, check_closed, spans_of
from fakes.schedules import CALM, ROUGH, Schedule, run_schedule

SEED = 4
"""A schedule in which both engines have much to report."""
Reports = list[Timeline]


def accounts(schedule: Schedule) -> Iterator[tuple[Side, Reports]]:
    """Both engines' reports of the last session."""
    mesh = schedule.mesh
    for side in Side:
        yield side, list(mesh.timelines[side])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(2_000_000, 2_100_000), is_rough=st.booleans())
def test_all_time_of_both_engines_is_accounted_for(seed: int, *, is_rough: bool) -> None:
    """Busy + bubbles by cause + idle is the wall time of a session, at each report and in the scheduler's sums."""
    schedule = run_schedule(seed, faults=ROUGH if is_rough else CALM)
    mesh = schedule.mesh
    for side, reports in accounts(schedule):
        check_account(reports, begin_us=mesh.connected_us)
        check_closed(reports, begin_us=mesh.connected_us)
        totals = mesh.session.totals.engines[side]
        assert totals.bubbles_us == bubbles_by_cause(reports)
        counted_us = totals.busy_us + sum(totals.bubbles_us.values()) + totals.idle_us
        assert counted_us == totals.clock_us - mesh.connected_us


def test_every_cause_but_lost_occurs() -> None:
    """The schedules reach all that can happen to an engine while its session lives."""
    seen: set[BubbleCause] = set()
    for seed in range(40):
        for _, reports in accounts(run_schedule(seed, faults=CALM)):
            seen |= set(bubbles_by_cause(reports))
    assert seen == set(BubbleCause) - {BubbleCause.LOST}


def _without_a_bubble(reports: Reports) -> Reports:
    index = next(index for index, report in enumerate(reports) if report.bubbles)
    return [*reports[:index], replace(reports[index], bubbles=reports[index].bubbles[1:]), *reports[index + 1 :]]


def _unit_counted_twice(reports: Reports) -> Reports:
    index = next(index for index, report in enumerate(reports) if report.ran)
    ran = reports[index].ran
    return [*reports[:index], replace(reports[index], ran=(*ran, ran[0])), *reports[index + 1 :]]


def _bubble_into_a_unit(reports: Reports) -> Reports:
    """A bubble ends a microsecond late, and idle time is less by it, so that the sum is right."""
    for index, report in enumerate(reports):
        begins = {ran.begin_us for ran in report.ran}
        late = [bubble for bubble in report.bubbles if bubble.end_us in begins]
        if late:
            kept = tuple(bubble for bubble in report.bubbles if bubble is not late[0])
            longer = Bubble(late[0].begin_us, late[0].end_us + 1, late[0].cause)
            changed = replace(report, bubbles=(*kept, longer), idle_us=report.idle_us - 1)
            return [*reports[:index], changed, *reports[index + 1 :]]
    raise AssertionError("no unit ended a bubble")


def _idle_too_long(reports: Reports) -> Reports:
    return [replace(reports[0], idle_us=reports[0].idle_us + 1), *reports[1:]]


@pytest.mark.parametrize("tamper", [_without_a_bubble, _unit_counted_twice, _bubble_into_a_unit, _idle_too_long])
def test_a_wrong_account_is_caught(tamper: Callable[[Reports], Reports]) -> None:
    """Time that is left out or counted twice fails the check that every schedule ends with."""
    schedule = run_schedule(SEED, faults=CALM)
    reports = list(schedule.mesh.timelines[Side.CLOUD])
    assert max(len(spans_of(report)) for report in reports) > 2
    begin_us = schedule.mesh.connected_us
    with pytest.raises(AssertionError):
        _check(tamper(reports), begin_us=begin_us)
    _check(reports, begin_us=begin_us)


def _check(reports: Reports, *, begin_us: int) -> None:
    check_account(reports, begin_us=begin_us)
    check_closed(reports, begin_us=begin_us)
