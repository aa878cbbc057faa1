"""The values of the adaptive plan, and the measures that they come from."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.adaptive import MAX_PREFILLS, Goal, Objective, Queue, adapt
from edgeweave.interleave.measures import Line, Measures
from edgeweave.interleave.nouns import Segment, Stage, StepDone, Timeline, UnitRan

BODY = Segment(1, 31)
QUEUE = Queue(
    prefill_tokens=4000,
    prefill_requests=10,
    chunk_tokens=400,
    output_tokens=1000,
    decode_rows=8,
    open_requests=18,
    max_rows=8,
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


def measured(
    *, layer_token_us: float = 2.0, step_fixed_us: float = 9000, rtt_us: int = 10_000, step_rows: float = 8
) -> Measures:
    """Return what a mesh with these times would have measured."""
    measures = Measures(BODY, token_bytes=1024, rtt_us=rtt_us, lane_bytes_per_us=1000.0)
    segments = [segment(tokens, layer_token_us * tokens) for tokens in (100, 200, 400, 100, 400)]
    steps = [step(rows, step_fixed_us + 500 * rows) for rows in (1, 4, 8, 2, 8)]
    measures.take_timeline(Timeline((*segments, *steps), (), 0, 0))
    measures.take_step(StepDone(1, (), 0, 1000))
    measures.step_rows = step_rows
    return measures


def segment(num_tokens: int, layer_us: float) -> UnitRan:
    """Return a segment of three layers."""
    return replace(ANY, stage=Stage.SEGMENT, stop=4, end_us=round(3 * layer_us), num_tokens=num_tokens, chunk=1)


def step(num_rows: int, took_us: float) -> UnitRan:
    """Return a step."""
    return replace(ANY, stage=Stage.STEP, end_us=round(took_us), num_rows=num_rows, num_tokens=num_rows, step=1)


def test_a_segment_covers_the_decode_return() -> None:
    """With little prefill waiting, the shortest segment is the time for which a step is outside the cloud."""
    measures = measured()
    values = adapt(measures, replace(QUEUE, prefill_tokens=100, prefill_requests=1), Goal())
    assert values.min_segment_us == measures.decode_return_us == 11_000


def test_prefill_is_rationed_over_the_steps_to_come() -> None:
    """Queued prefill time is shared among the steps that are left: 240 ms over 1000 / 8 steps of a full batch."""
    measures = measured(rtt_us=100)
    values = adapt(measures, replace(QUEUE, prefill_tokens=4000, output_tokens=100), Goal())
    waiting_us = measures.prefill_us(4000, chunk_tokens=400)
    assert values.min_segment_us == pytest.approx(waiting_us * 8 / 100, rel=0.01)


def test_a_thin_batch_is_filled_first_where_a_step_is_dear_and_near() -> None:
    """The same queue gives a longer segment when half of the batch is empty, the more so the dearer a step is."""
    dear, dear_thin = measured(step_fixed_us=100_000), measured(step_fixed_us=100_000, step_rows=2)
    cheap_thin = measured(step_fixed_us=1000, step_rows=2)
    assert adapt(dear_thin, QUEUE, Goal()).min_segment_us > adapt(dear, QUEUE, Goal()).min_segment_us
    assert adapt(dear_thin, QUEUE, Goal()).min_segment_us > adapt(cheap_thin, QUEUE, Goal()).min_segment_us


def test_two_groups_only_without_prefill_and_only_where_they_pay() -> None:
    """Two groups pay twice the fixed part: worth it where the return is about a step, not nearby nor far away."""
    alone = replace(QUEUE, prefill_tokens=0, prefill_requests=0)
    assert [adapt(measured(rtt_us=rtt), alone, Goal()).max_steps for rtt in (500, 10_000, 100_000)] == [1, 2, 1]
    assert adapt(measured(rtt_us=10_000), QUEUE, Goal()).max_steps == 1


def test_more_chunks_are_in_flight_where_the_handoff_is_longer_than_a_chunk() -> None:
    """Chunks in flight grow with the round trip measured in chunks, and is bounded."""
    near, far = measured(rtt_us=100), measured(layer_token_us=0.5, rtt_us=100_000)
    assert adapt(near, QUEUE, Goal()).max_prefills == 2
    assert adapt(far, replace(QUEUE, chunk_tokens=100), Goal()).max_prefills == MAX_PREFILLS


def test_time_per_token_bounds_the_segment() -> None:
    """With the objective tpot a segment and a step fit into the time that is asked for."""
    measures = measured()
    goal = Goal(Objective.TPOT, 20_000)
    values = adapt(measures, replace(QUEUE, output_tokens=10), goal)
    assert values.min_segment_us <= 20_000 - measures.step_by_rows.at(8)
    assert values.longest_layers is not None
    assert values.longest_layers * measures.layer_by_tokens.at(400) <= 20_000


def test_time_to_first_token_lets_a_chunk_run_through() -> None:
    """With the objective ttft a chunk is not interrupted."""
    measures = measured()
    values = adapt(measures, QUEUE, Goal(Objective.TTFT))
    assert values.min_segment_us >= measures.prefill_us(400, chunk_tokens=400)


@given(
    prefill_tokens=st.integers(0, 10**6),
    prefill_requests=st.integers(0, 1000),
    chunk_tokens=st.integers(1, 8192),
    output_tokens=st.integers(0, 10**6),
    decode_rows=st.integers(0, 500),
    open_requests=st.integers(0, 2000),
    max_rows=st.integers(1, 500),
)
def test_values_are_sane_for_every_queue(**fields: int) -> None:
    """Whatever waits, counts are in their ranges and a segment covers the return at least."""
    measures = measured()
    values = adapt(measures, Queue(**fields), Goal())
    assert values.min_segment_us >= measures.decode_return_us
    assert 1 <= values.max_prefills <= MAX_PREFILLS
    assert values.max_steps in {1, 2}
    assert 0 <= values.covered_share <= 1


def test_a_line_finds_its_parts() -> None:
    """Fixed part and slope come out of noiseless observations."""
    line = Line()
    for x in (1, 5, 9, 3, 7):
        line.observe(x, 40 + 3 * x)
    assert line.fixed == pytest.approx(40, rel=0.01)
    assert line.at(11) == pytest.approx(73, rel=0.01)


def test_a_line_ignores_outliers_and_follows_changes() -> None:
    """One stalled unit changes nothing; a machine that became slower is followed."""
    line = Line()
    for _ in range(20):
        line.observe(8, 100)
    line.observe(8, 5000)
    assert line.at(8) == pytest.approx(100)
    for _ in range(300):
        line.observe(8, 200)
    assert line.at(8) == pytest.approx(200, rel=0.02)


@given(st.lists(st.tuples(st.floats(0.1, 1e4), st.floats(0, 1e6)), min_size=1, max_size=50))
def test_a_line_never_predicts_below_zero(observations: list[tuple[float, float]]) -> None:
    """Neither part of a line is negative, so no time is."""
    line = Line()
    for x, y in observations:
        line.observe(x, y)
    assert line.fixed >= 0
    assert line.at(0.1) >= 0
    assert line.at(1e5) >= line.at(1.0) - 1e-6
