"""Plans by name, their values, and the cut of a body."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.nouns import Fuse, Plan, PlanKind, Row, Segment
from edgeweave.interleave.plans import MAX_IN_FLIGHT, PlanRequest, cut_evenly, kind_named, make_plan
from edgeweave.interleave.rows import rows_between


def planned(request: PlanRequest) -> Plan:
    """Make a plan of which only the request matters."""
    return make_plan(request, number=7, max_batch_size=4, max_grace_us=9)


@pytest.mark.parametrize(
    ("name", "k", "next_head_first"), [("serial", 1, False), ("1p1d", 1, False), ("2p1d", 2, True)]
)
def test_a_name_stands_for_its_limits(name: str, k: int, *, next_head_first: bool) -> None:
    """L07, L08, L12: 1p1d has one chunk and one step in flight, 2p1d two chunks, whose next head goes first."""
    plan = planned(PlanRequest(kind_named(name)))
    assert (plan.max_prefills, plan.max_steps, plan.next_head_first) == (k, 1, next_head_first)
    assert (plan.plan, plan.max_batch_size, plan.max_grace_us) == (7, 4, 9)


@pytest.mark.parametrize("values", [{"max_prefills": 2}, {"max_steps": 2}])
def test_serial_with_more_than_one_unit_contradicts_itself(values: dict[str, Any]) -> None:
    """A plan that contradicts its kind is refused and the error says how."""
    with pytest.raises(InvalidRequestError, match="serial keeps one unit away"):
        planned(PlanRequest(PlanKind.SERIAL, **values))


def test_rows_ride_from_the_start_only_where_they_always_shall() -> None:
    """`auto` begins apart, as `never` does: it is not known yet what riding gives. One unit alone cannot take rows."""
    for kind in (PlanKind.ONE_P_ONE_D, PlanKind.TWO_P_ONE_D, PlanKind.ADAPTIVE):
        fuses = {fuse: planned(PlanRequest(kind, fuse=fuse)).may_fuse for fuse in Fuse}
        assert fuses == {Fuse.AUTO: False, Fuse.NEVER: False, Fuse.ALWAYS: True}
    with pytest.raises(InvalidRequestError, match="so fuse cannot be always"):
        planned(PlanRequest(PlanKind.SERIAL, fuse=Fuse.ALWAYS))


@pytest.mark.parametrize("values", [{"max_prefills": MAX_IN_FLIGHT + 1}, {"max_steps": -1}])
def test_limits_outside_the_range_are_refused(values: dict[str, Any]) -> None:
    """The cloud bounds by `MAX_IN_FLIGHT` the steps that it holds, so no plan goes beyond."""
    with pytest.raises(InvalidRequestError, match=f"between 1 and {MAX_IN_FLIGHT}"):
        planned(PlanRequest(PlanKind.TWO_P_ONE_D, **values))
    assert planned(PlanRequest(PlanKind.TWO_P_ONE_D, max_prefills=MAX_IN_FLIGHT)).max_prefills == MAX_IN_FLIGHT


def test_a_name_that_is_not_known_is_refused_with_those_that_are() -> None:
    """An unknown name lists the names."""
    with pytest.raises(InvalidRequestError, match="serial, 1p1d, 2p1d, adaptive"):
        kind_named("3p9d")


def test_adaptive_begins_as_two_prefills_and_one_step() -> None:
    """Until enough is measured, the adaptive plan is the fixed one that hides most."""
    plan = planned(PlanRequest(PlanKind.ADAPTIVE))
    assert (plan.max_prefills, plan.max_steps, plan.next_head_first, plan.min_segment_us) == (2, 1, True, 0)


@given(start=st.integers(0, 9), num_layers=st.integers(1, 200), num_segments=st.integers(1, 250))
def test_a_cut_covers_each_layer_once_longer_segments_first(start: int, num_layers: int, num_segments: int) -> None:
    """L19: segments follow on each other, differ by at most one layer, and never grow."""
    segments = cut_evenly(Segment(start, start + num_layers), num_segments=num_segments)
    layers = [layer for segment in segments for layer in range(segment.start, segment.stop)]
    assert layers == list(range(start, start + num_layers))
    lengths = [segment.num_layers for segment in segments]
    assert len(lengths) == min(num_segments, num_layers)
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[-1] <= 1


@given(
    spans=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=6),
    piece=st.integers(1, 25),
)
def test_pieces_of_rows_hold_every_position_once_and_in_order(spans: list[tuple[int, int]], piece: int) -> None:
    """A chunk cut into pieces of tensor rows loses and repeats nothing."""
    rows = tuple(Row(number, start, start + length) for number, (start, length) in enumerate(spans))
    total = sum(row.num_tokens for row in rows)
    parts = [rows_between(rows, start=at, stop=min(at + piece, total)) for at in range(0, total, piece)]
    assert all(sum(row.num_tokens for row in part) == piece for part in parts[:-1])
    cells = [(row.sequence, token) for part in parts for row in part for token in range(row.start, row.stop)]
    assert cells == [(row.sequence, token) for row in rows for token in range(row.start, row.stop)]
