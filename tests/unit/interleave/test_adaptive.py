"""The values of the adaptive plan, and the measures that they come from."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.adaptive import (
    MAX_PREFILLS,
    MAX_RIDE_PREFILLS,
    MAX_STEPS,
    SHORT_CHUNK,
    Goal,
    Objective,
    Values,
    adapt,
    balanced_segments,
)
from edgeweave.interleave.forecast import Forecast, Queue
from edgeweave.interleave.measures import Measures
from edgeweave.interleave.nouns import Fuse, Segment, Stage, StepDone, Timeline, UnitRan
from edgeweave.interleave.round_trips import RoundTrips

BODY = Segment(1, 31)
QUEUE = Queue(
    open_requests=12,
    decode_rows=8,
    mean_prompt=400,
    mean_output=40,
    waiting_tokens=4 * 400,
    chunk_tokens=400,
    max_rows=8,
    max_steps=1,
    max_prefills=2,
)

ANY = UnitRan(
    stage=Stage.STEP,
    start=BODY.start,
    stop=BODY.stop,
    begin_us=0,
    end_us=0,
    prefill_ready=True,
    decode_ready=True,
    num_rows=1,
    num_tokens=1,
    plan=1,
)


def measured(*, layer_token_us: float = 2.0, step_fixed_us: float = 9000, rtt_us: int = 10_000) -> Measures:
    """Return what a mesh with these times would have measured."""
    measures = Measures(BODY, token_bytes=1024, trips=RoundTrips(rtt_us), lane_bytes_per_us=1000.0)
    segments = [segment(tokens, layer_token_us * tokens) for tokens in (100, 200, 400, 100, 400)]
    steps = [step(rows, step_fixed_us + 500 * rows) for rows in (1, 2, 4, 8) for _ in range(4)]
    measures.take_timeline(Timeline((*segments, *steps), (), 0, 0))
    measures.take_step(StepDone(99, (), 0, 1000))
    return measures


def segment(num_tokens: int, layer_us: float) -> UnitRan:
    """Return a segment of three layers."""
    return replace(ANY, stage=Stage.SEGMENT, stop=4, end_us=round(3 * layer_us), num_tokens=num_tokens, chunk=1)


def step(num_rows: int, took_us: float) -> UnitRan:
    """Return a step."""
    return replace(ANY, stage=Stage.STEP, end_us=round(took_us), num_rows=num_rows, num_tokens=num_rows, step=1)


def values_of(
    measures: Measures,
    goal: Goal = Goal(),  # noqa: B008 - a frozen value
    *,
    fuse: Fuse = Fuse.NEVER,
    **changed: Any,
) -> Values:
    """Return what an adaptive plan would be set to, chunks and steps apart unless asked otherwise."""
    return adapt(Forecast(measures, replace(QUEUE, **changed)), goal, fuse=fuse)


def test_a_short_piece_says_less_of_layers_than_a_whole_chunk() -> None:
    """A layer in a unit whose cost doubles its time counts by a third of what each of five pieces of three does."""
    measures = measured()
    before_us = measures.layer_by_tokens.at(200)
    thin = replace(ANY, stage=Stage.SEGMENT, stop=2, end_us=round(2 * before_us), num_tokens=200, chunk=1)
    measures.take_timeline(Timeline((thin,), (), 0, 0))
    assert before_us < measures.layer_by_tokens.at(200) < 1.1 * before_us


def test_a_full_batch_is_kept_where_prefill_is_ample() -> None:
    """A step waits for all rows and one more, as long as the prompts that are missing take."""
    measures = measured()
    values = values_of(measures, mean_prompt=4000)
    assert values.fill_to_rows == 8 + 1
    assert values.fill_row_us == pytest.approx(measures.prefill_us(4000, chunk_tokens=400), abs=1)
    assert values.min_segment_us == 0


def test_a_step_waits_for_fewer_rows_where_prefill_is_scarce_and_the_return_long() -> None:
    """Missing rows pay for prefill from B R / (F + R): 9 ms of fixed part against 1, 9 and 81 ms of return."""
    far = [measured(rtt_us=rtt_us) for rtt_us in (1, 8000, 80_000)]
    fills = [values_of(measures, decode_rows=1, max_rows=10, mean_prompt=1).fill_to_rows for measures in far]
    assert fills[0] > fills[1] > fills[2]
    assert fills[1] == 10 + 1 - 5


def test_where_one_place_holds_all_layers_the_batch_is_filled_first() -> None:
    """There is no return to cover: prefill goes first until the batch is full."""
    measures = Measures(Segment(30, 30), holds_body=True)
    heads = [replace(ANY, stage=Stage.HEAD, end_us=100 * tokens, num_tokens=tokens, chunk=1) for tokens in (10, 90) * 3]
    steps = [replace(ANY, stage=Stage.TURNAROUND, end_us=5000, num_rows=rows, step=1) for rows in (1, 2, 4, 8)]
    measures.take_timeline(Timeline((*heads, *steps), (), 0, 0))
    values = values_of(measures)
    assert values.fill_to_rows == 9
    assert values.fill_row_us == pytest.approx(40_000, rel=0.01)


def test_before_a_step_was_measured_batches_are_filled() -> None:
    """A load that begins, or one of prompts alone, has no steps to learn from."""
    measures = Measures(BODY, token_bytes=1024, trips=RoundTrips(10_000), lane_bytes_per_us=1000.0)
    measures.take_timeline(Timeline(tuple(segment(tokens, 2.0 * tokens) for tokens in (100, 200, 400, 100)), (), 0, 0))
    values = values_of(measures)
    assert (values.fill_to_rows, values.max_steps) == (9, 1)


def test_more_groups_only_where_prefill_does_not_cover_the_return_and_they_pay() -> None:
    """Two groups pay twice the fixed part: not nearby, nor where prefill covers the return."""
    near, far = measured(rtt_us=500), measured(rtt_us=20_000)
    assert values_of(near, mean_prompt=1).max_steps == 1
    assert values_of(far, mean_prompt=1).max_steps > 1
    assert values_of(far, mean_prompt=4000).max_steps == 1


def test_the_number_of_groups_stays_unless_another_one_is_clearly_better() -> None:
    """Groups do not swing: within a twelfth the present number is kept."""
    measures, queue = measured(rtt_us=8500), replace(QUEUE, open_requests=8, mean_prompt=1)
    gives = Forecast(measures, queue)
    one, two = (gives.rows_per_s(max_steps=steps, max_prefills=4) for steps in (1, 2))
    assert one < two < 1.08 * one
    assert [
        adapt(Forecast(measures, replace(queue, max_steps=steps)), Goal(), fuse=Fuse.NEVER).max_steps
        for steps in (1, 2)
    ] == [1, 2]


def test_more_chunks_are_in_flight_where_the_handoff_is_longer_than_a_chunk() -> None:
    """Chunks in flight grow with the round trip measured in chunks, and are bounded."""
    near, far = measured(rtt_us=100), measured(layer_token_us=0.5, rtt_us=100_000)
    assert values_of(near).max_prefills == 2
    assert values_of(far, chunk_tokens=100).max_prefills == MAX_PREFILLS


def test_the_next_chunk_is_there_even_when_a_short_one_is_through() -> None:
    """Prompts differ: what is in flight covers a handoff that a chunk of mean length would just cover."""
    measures = measured(rtt_us=20_000)
    forecast = Forecast(measures, QUEUE)
    handoff_us = measures.handoff_us(QUEUE.chunk_tokens)
    assert SHORT_CHUNK * forecast.chunk_us < handoff_us < forecast.chunk_us
    assert values_of(measures).max_prefills == 3


def test_too_few_chunks_in_flight_are_seen_in_the_forecast() -> None:
    """Prefill comes in handoffs: one chunk in flight feeds less than two do, far away."""
    forecast = Forecast(measured(rtt_us=50_000), replace(QUEUE, mean_prompt=4000))
    assert forecast.rows_per_s(max_steps=1, max_prefills=1) < forecast.rows_per_s(max_steps=1, max_prefills=4)


def test_time_per_token_bounds_what_runs_between_two_steps() -> None:
    """With the objective tpot a segment, or what fills the batch, and a step fit into the time that is asked for."""
    measures = measured()
    values = values_of(measures, Goal(Objective.TPOT, tpot_slo_us=20_000), mean_prompt=4000)
    left_us = 20_000 - measures.step_by_rows.at(8)
    assert values.fill_row_us * values.fill_to_rows <= left_us + values.fill_to_rows
    assert values.longest_layers is not None
    assert values.longest_layers * measures.layer_by_tokens.at(400) <= left_us


@pytest.mark.parametrize(("slo_us", "expected"), [(None, True), (50_000, True), (500_000, False)])
def test_time_to_first_token_lets_a_chunk_run_through_where_it_would_be_late(
    slo_us: int | None,
    expected: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """With the objective ttft a chunk is not interrupted, unless what waits is in time anyway."""
    measures = measured()
    values = values_of(measures, Goal(Objective.TTFT, ttft_slo_us=slo_us))
    assert (values.min_segment_us >= round(measures.prefill_us(400, chunk_tokens=400))) is expected


def test_a_burst_of_prompts_is_worked_off_although_steps_are_due() -> None:
    """Half a batch of prompts may wait to cover returns; what is beyond runs in an eighth of an answer's steps."""
    measures = measured()
    assert values_of(measures, waiting_tokens=4 * 400).min_segment_us == 0
    surplus_us = measures.prefill_us(1 * 400, chunk_tokens=400)
    assert values_of(measures, waiting_tokens=5 * 400).min_segment_us == pytest.approx(surplus_us / 5, abs=1)
    whole_us = measures.prefill_us(400, chunk_tokens=400)
    assert values_of(measures, waiting_tokens=5000 * 400).min_segment_us == pytest.approx(whole_us, abs=1)


def test_a_fixed_plan_cuts_no_shorter_than_a_return_and_what_a_full_step_asks_for() -> None:
    """A chunk of 24 ms: four segments over a return of 6 ms, one where each full step has 24 ms of prefill."""
    scarce, ample = (Forecast(measured(rtt_us=5000), replace(QUEUE, mean_prompt=tokens)) for tokens in (1, 2000))
    assert balanced_segments(scarce) == 4
    assert balanced_segments(ample) == 1
    assert balanced_segments(Forecast(Measures(BODY), QUEUE)) is None


@given(
    open_requests=st.integers(0, 2000),
    decode_rows=st.integers(0, 2000),
    mean_prompt=st.floats(0, 10**6),
    mean_output=st.floats(0, 10**6),
    waiting_tokens=st.integers(0, 10**6),
    chunk_tokens=st.integers(1, 8192),
    max_rows=st.integers(1, 500),
    max_steps=st.integers(1, 16),
    max_prefills=st.integers(1, 16),
    most_tokens=st.none() | st.integers(1, 8192),
    fuses=st.booleans(),
    rtt_us=st.integers(0, 10**6),
    objective=st.sampled_from(Objective),
    slo_us=st.none() | st.integers(1, 10**6),
)
def test_values_are_sane_for_every_queue(rtt_us: int, objective: Objective, slo_us: int | None, **fields: Any) -> None:
    """Whatever is open and asked for, counts are in their ranges and times are not negative."""
    values = adapt(Forecast(measured(rtt_us=rtt_us), Queue(**fields)), Goal(objective, slo_us, slo_us))
    assert 1 <= values.max_prefills <= MAX_RIDE_PREFILLS
    assert values.max_steps == fields["max_steps"] or 1 <= values.max_steps <= MAX_STEPS
    assert 1 <= values.fill_to_rows <= values.max_steps * fields["max_rows"] + 1
    assert values.min_segment_us >= 0
    assert values.fill_row_us >= 0
    assert 0 <= values.fuse_after_layers <= BODY.num_layers
    assert values.may_fuse is (values.ride_tokens is not None)
    assert (values.ride_tokens or 1) >= 1
    assert values.longest_layers is None or values.longest_layers >= 1


def test_requests_that_wait_for_a_place_are_a_reason_for_another_group() -> None:
    """A queue in front of a full batch: two groups of full steps are more than one."""
    measures = measured(rtt_us=4000)
    assert values_of(measures, open_requests=12, mean_prompt=10).max_steps == 1
    assert values_of(measures, open_requests=40, mean_prompt=10).max_steps > 1


def test_rows_ride_where_that_is_worth_it_and_not_where_prefill_is_needed_as_cover() -> None:
    """Ample prefill close by: they do. Hardly any, and a return of ten steps: all of it covers."""
    near, far = measured(rtt_us=1000), measured(rtt_us=100_000)
    rides = values_of(near, fuse=Fuse.AUTO, mean_prompt=4000)
    covers = values_of(far, fuse=Fuse.AUTO, mean_prompt=40)
    assert rides.may_fuse
    assert rides.ride_tokens is not None
    assert not covers.may_fuse
    assert covers == values_of(far, mean_prompt=40)


def test_an_operator_may_have_rows_ride_always_or_never() -> None:
    """Whatever is predicted; how large chunks are to be is predicted all the same."""
    near, far = measured(rtt_us=1000), measured(rtt_us=100_000)
    assert not values_of(near, fuse=Fuse.NEVER, mean_prompt=4000).may_fuse
    always = values_of(far, fuse=Fuse.ALWAYS, mean_prompt=40)
    assert always.may_fuse
    assert always.ride_tokens is not None


def test_rows_begin_to_ride_for_a_clear_gain_and_ride_on_for_none() -> None:
    """Between the two borders what is in force stays."""
    measures = measured(rtt_us=9000)
    for tokens in range(1, 4000, 20):
        now, then = (
            values_of(measures, fuse=Fuse.AUTO, fuses=fuses, mean_prompt=tokens).may_fuse for fuses in (False, True)
        )
        assert then or not now
        if then and not now:
            return
    pytest.fail("no load lies between the borders")


def test_time_per_token_bounds_the_chunks_that_rows_ride_in() -> None:
    """With the objective tpot a chunk with a step in it takes no longer than is asked for."""
    measures = measured(rtt_us=1000)
    short = values_of(measures, Goal(Objective.TPOT, tpot_slo_us=15_000), fuse=Fuse.AUTO, mean_prompt=1000)
    assert short.ride_tokens is not None
    assert measures.fused_us(short.ride_tokens, num_rows=8) <= 15_000
    assert short.ride_tokens < (values_of(measures, fuse=Fuse.AUTO, mean_prompt=1000).ride_tokens or 0)
