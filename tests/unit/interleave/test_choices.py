"""The decision functions: what runs next, and whether a chunk may be issued."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.errors import ProtocolError
from edgeweave.interleave.choices import (
    CloudView,
    EdgeView,
    EdgeWork,
    Issue,
    MeshView,
    StageView,
    Wait,
    Work,
    choose_stage,
    may_launch_step,
    may_start_head,
    next_edge_unit,
    next_unit,
    rides,
)
from edgeweave.interleave.nouns import Plan, PlanKind

SERIAL = Plan(plan=1, kind=PlanKind.SERIAL, max_prefills=1, max_steps=1, max_batch_size=8)
ONE_P = Plan(plan=2, kind=PlanKind.ONE_P_ONE_D, max_prefills=1, max_steps=1, max_batch_size=8, max_grace_us=100)
TWO_P = Plan(plan=3, kind=PlanKind.TWO_P_ONE_D, max_prefills=2, max_steps=1, max_batch_size=8, next_head_first=True)
BOTH = st.booleans()
LAST = st.sampled_from([None, Work.PREFILL, Work.DECODE])
FUSES = replace(TWO_P, plan=4, may_fuse=True, fuse_after_layers=6)

# ---- the stage table


@pytest.mark.parametrize("plan", [ONE_P, TWO_P], ids=["1p1d", "2p1d"])
@pytest.mark.parametrize(
    ("decoding", "waiting", "running", "expected"),
    [
        (False, True, False, Issue.PREFILL),
        (False, True, True, Issue.PREFILL),
        (False, False, True, Issue.DECODE),
        (False, False, False, Issue.PREFILL),
        (True, True, True, Issue.PREFILL),
        (True, False, True, Issue.PREFILL),
    ],
)
def test_below_the_limit_the_table_says(
    plan: Plan, *, decoding: bool, waiting: bool, running: bool, expected: Issue
) -> None:
    """L09, rows with p < k: prefill, but decode where nothing waits and nothing is in a decode group yet."""
    for num_prefills in range(plan.max_prefills):
        view = StageView(num_prefills=num_prefills, decoding=decoding, waiting=waiting, running=running)
        assert choose_stage(view, plan) is expected


@given(waiting=BOTH, running=BOTH)
def test_at_the_limit_only_decode_is_left(*, waiting: bool, running: bool) -> None:
    """L07, L08, L09, row p = k and d = 0: nothing more is issued."""
    for plan in (ONE_P, TWO_P):
        view = StageView(plan.max_prefills, decoding=False, waiting=waiting, running=running)
        assert choose_stage(view, plan) is Issue.DECODE


@given(waiting=BOTH, running=BOTH, low_blocks=BOTH, last_empty=BOTH)
def test_at_the_limit_beside_decode_is_an_error_with_both_counters(
    *, waiting: bool, running: bool, low_blocks: bool, last_empty: bool
) -> None:
    """L09, L11, row p = k and d = 1: the caller must not ask; the error names both counters."""
    view = StageView(2, decoding=True, waiting=waiting, running=running, low_blocks=low_blocks, last_empty=last_empty)
    with pytest.raises(ProtocolError, match="2 of 2 chunks in flight beside decode"):
        choose_stage(view, TWO_P)


@given(waiting=BOTH, num_prefills=st.integers(0, 1))
def test_low_blocks_or_an_empty_attempt_force_decode(*, waiting: bool, num_prefills: int) -> None:
    """L10: with d = 0 and something to run, decode is forced whatever waits."""
    for low_blocks, last_empty in ((True, False), (False, True), (True, True)):
        view = StageView(
            num_prefills, decoding=False, waiting=waiting, running=True, low_blocks=low_blocks, last_empty=last_empty
        )
        assert choose_stage(view, TWO_P) is Issue.DECODE


# ---- the edge


@given(turnaround=BOTH, tail=BOTH, head=BOTH, last=st.sampled_from([None, *EdgeWork]))
def test_the_edge_runs_the_first_class_that_is_ready(
    *, turnaround: bool, tail: bool, head: bool, last: EdgeWork | None
) -> None:
    """L12: a turnaround goes first; then the next head under 2p1d, the tail under 1p1d; what ran last is no matter."""
    view = EdgeView(turnaround_ready=turnaround, tail_ready=tail, head_ready=head, last=last)
    ready = {EdgeWork.TURNAROUND: turnaround, EdgeWork.TAIL: tail, EdgeWork.HEAD: head}
    one_p = (EdgeWork.TURNAROUND, EdgeWork.TAIL, EdgeWork.HEAD)
    two_p = (EdgeWork.TURNAROUND, EdgeWork.HEAD, EdgeWork.TAIL)
    for plan, order in ((ONE_P, one_p), (TWO_P, two_p)):
        assert next_edge_unit(view, plan) is next((work for work in order if ready[work]), None)


@given(tail=BOTH, head=BOTH)
def test_an_edge_that_holds_all_layers_alternates(*, tail: bool, head: bool) -> None:
    """Centralized, nothing is away, so a turnaround is always ready: prefill gets every other turn."""
    after_step = EdgeView(
        turnaround_ready=True, tail_ready=tail, head_ready=head, last=EdgeWork.TURNAROUND, holds_body=True
    )
    expected = EdgeWork.TAIL if tail else EdgeWork.HEAD if head else EdgeWork.TURNAROUND
    assert next_edge_unit(after_step, ONE_P) is expected
    after_prefill = EdgeView(
        turnaround_ready=True, tail_ready=tail, head_ready=head, last=EdgeWork.HEAD, holds_body=True
    )
    assert next_edge_unit(after_prefill, ONE_P) is EdgeWork.TURNAROUND


# ---- the cloud


@given(last=LAST, before=LAST, due_us=st.none() | st.integers(0, 500))
def test_both_ready_alternates_and_begins_with_prefill(
    *, last: Work | None, before: Work | None, due_us: int | None
) -> None:
    """L16: the kind that did not run last; prefill on a cold start. No grace where there is no need to wait."""
    view = CloudView(100, prefill_ready=True, decode_ready=True, last=last, before_last=before, decode_due_us=due_us)
    assert next_unit(view, ONE_P) is (Work.DECODE if last is Work.PREFILL else Work.PREFILL)


@given(last=LAST, before=LAST, due_us=st.none() | st.integers(0, 500))
def test_decode_alone_runs_at_once(*, last: Work | None, before: Work | None, due_us: int | None) -> None:
    """L18: a prefill whose frames are on the way holds no decode back."""
    view = CloudView(100, prefill_ready=False, decode_ready=True, last=last, before_last=before, decode_due_us=due_us)
    assert next_unit(view, ONE_P) is Work.DECODE


@given(last=LAST, before=LAST, due_us=st.none() | st.integers(0, 500), grace_us=st.integers(0, 300))
def test_prefill_alone_waits_only_for_a_decode_that_is_due_within_the_grace(
    *, last: Work | None, before: Work | None, due_us: int | None, grace_us: int
) -> None:
    """L15, L17: after decode, then segment, and only if decode is due within the grace; until then, never past it."""
    now_us = 100
    plan = Plan(plan=1, kind=PlanKind.ONE_P_ONE_D, max_prefills=1, max_steps=1, max_batch_size=1, max_grace_us=grace_us)
    view = CloudView(
        now_us, prefill_ready=True, decode_ready=False, last=last, before_last=before, decode_due_us=due_us
    )
    choice = next_unit(view, plan)
    is_pair = (before, last) == (Work.DECODE, Work.PREFILL)
    if is_pair and due_us is not None and now_us < due_us <= now_us + grace_us:
        assert choice == Wait(due_us)
    else:
        assert choice is Work.PREFILL


@given(last=LAST, before=LAST)
def test_nothing_ready_runs_nothing(*, last: Work | None, before: Work | None) -> None:
    """With nothing ready there is no choice, and no wait either."""
    view = CloudView(1, prefill_ready=False, decode_ready=False, last=last, before_last=before, decode_due_us=50)
    assert next_unit(view, ONE_P) is None


@given(ready=st.lists(st.tuples(BOTH, BOTH), max_size=200))
def test_nobody_starves_in_the_cloud(ready: list[tuple[bool, bool]]) -> None:
    """L18: whatever arrives when, a kind that is ready is passed over at most once in a row."""
    last = before = None
    passed_over = dict.fromkeys(Work, 0)
    for now_us, (prefill, decode) in enumerate(ready):
        view = CloudView(now_us, prefill_ready=prefill, decode_ready=decode, last=last, before_last=before)
        choice = next_unit(view, ONE_P)
        if not isinstance(choice, Work):
            continue
        before, last = last, choice
        for work, is_ready in ((Work.PREFILL, prefill), (Work.DECODE, decode)):
            passed_over[work] = passed_over[work] + 1 if is_ready and work is not choice else 0
            assert passed_over[work] <= 1


# ---- rows that ride in prefill


@given(last=LAST, run_us=st.integers(0, 10**6), ride=st.integers(0, 12), ahead=st.integers(0, 12))
def test_rows_ride_in_a_chunk_that_has_not_begun_or_is_far_enough(
    *, last: Work | None, run_us: int, ride: int, ahead: int
) -> None:
    """Alone up to the layer of the chunk, then with it; whatever ran last, and however long prefill had its turn."""
    view = CloudView(1, prefill_ready=True, decode_ready=True, last=last, prefill_run_us=run_us, ride_layers=ride)
    takes_rows = ride == 0 or ride >= 6
    assert rides(view, FUSES) is takes_rows
    if takes_rows:
        assert next_unit(view, FUSES) is (Work.DECODE if ride else Work.FUSED)
        assert next_unit(replace(view, step_layers=ride), FUSES) is Work.FUSED
    else:
        assert next_unit(view, FUSES) is next_unit(view, TWO_P)
    beyond = replace(view, step_layers=ride + 1 + ahead)
    assert next_unit(beyond, FUSES) is Work.DECODE, "a step that is further than the chunk goes on alone"


@given(last=LAST, ride=st.integers(0, 12), step=st.integers(0, 12))
def test_no_plan_fuses_unless_it_says_so(*, last: Work | None, ride: int, step: int) -> None:
    """L16: without `may_fuse` a unit is of one kind; a step that has begun goes on, though the plan changed."""
    view = CloudView(
        1, prefill_ready=True, decode_ready=True, last=last, ride_layers=ride, step_layers=step, prefill_run_us=9
    )
    for plan in (ONE_P, TWO_P, SERIAL):
        assert not rides(view, plan)
        expected = Work.DECODE if step or last in (Work.PREFILL, Work.FUSED) else Work.PREFILL
        assert next_unit(view, plan) is expected


@given(prefill=BOTH, ride=st.integers(0, 12), step=st.integers(0, 12))
def test_rows_need_a_chunk_and_a_step_to_ride(*, prefill: bool, ride: int, step: int) -> None:
    """Only one kind ready: it runs by itself."""
    view = CloudView(1, prefill_ready=prefill, decode_ready=not prefill, ride_layers=ride, step_layers=step)
    assert not rides(view, FUSES)
    assert next_unit(view, FUSES) is (Work.PREFILL if prefill else Work.DECODE)


@given(turnaround=BOTH, tail=BOTH, head=BOTH, last=st.sampled_from([None, *EdgeWork]))
def test_one_place_fuses_a_turnaround_with_the_next_head(
    *, turnaround: bool, tail: bool, head: bool, last: EdgeWork | None
) -> None:
    """Tails go before, since their sequences join the step; an edge without the body never fuses."""
    view = EdgeView(turnaround_ready=turnaround, tail_ready=tail, head_ready=head, last=last, holds_body=True)
    choice = next_edge_unit(view, FUSES)
    if turnaround and (tail or head):
        assert choice is (EdgeWork.TAIL if tail else EdgeWork.FUSED)
    else:
        assert choice is next_edge_unit(view, TWO_P)
    split = replace(view, holds_body=False)
    assert next_edge_unit(split, FUSES) is next_edge_unit(split, TWO_P)


# ---- serial


def test_serial_keeps_one_unit_of_the_mesh_away() -> None:
    """While a chunk or a step is away, neither kind may start; the other plans bound the steps alone."""
    for chunk_away, num_steps, waits, rows, last_was_step in product(
        (False, True), (0, 1), (False, True), (False, True), (False, True)
    ):
        view = MeshView(chunk_away, num_steps, chunk_waits=waits, rows_wait=rows, last_was_step=last_was_step)
        if chunk_away or num_steps:
            assert not may_start_head(view, SERIAL)
            assert not may_launch_step(view, SERIAL)
        assert may_start_head(view, TWO_P)
        assert may_launch_step(view, TWO_P) is (num_steps < 1)


def test_serial_takes_turns_where_both_wait_and_lets_one_alone_go_on() -> None:
    """Both wait: exactly the kind that was not away last. One waits: it goes, whoever was last."""
    for last_was_step in (False, True):
        both = MeshView(
            chunk_away=False, num_steps_away=0, chunk_waits=True, rows_wait=True, last_was_step=last_was_step
        )
        assert may_start_head(both, SERIAL) is last_was_step
        assert may_launch_step(both, SERIAL) is not last_was_step
        only_chunk = MeshView(
            chunk_away=False, num_steps_away=0, chunk_waits=True, rows_wait=False, last_was_step=last_was_step
        )
        assert may_start_head(only_chunk, SERIAL)
        only_rows = MeshView(
            chunk_away=False, num_steps_away=0, chunk_waits=False, rows_wait=True, last_was_step=last_was_step
        )
        assert may_launch_step(only_rows, SERIAL)
