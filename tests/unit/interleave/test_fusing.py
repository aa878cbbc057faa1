"""What riding gives, worked out by hand: the sizes of chunks and the rounds that they make."""

from dataclasses import replace

import pytest

from edgeweave.interleave.forecast import Forecast, Queue
from edgeweave.interleave.fusing import Ride, best_ride, round_apart_us
from edgeweave.interleave.measures import Measures
from edgeweave.interleave.nouns import Rider, Segment, Stage, StepDone, Timeline, UnitRan
from edgeweave.interleave.round_trips import RoundTrips

BODY = Segment(1, 11)
RAN = UnitRan(
    Stage.STEP, BODY.start, BODY.stop, 0, 0, prefill_ready=True, decode_ready=True, num_rows=1, num_tokens=1, plan=1
)
STEP_US = 10_000
TOKEN_US = 100
"""The whole body for a token of prefill; there is no fixed part."""
QUEUE = Queue(
    open_requests=6,
    decode_rows=4,
    mean_prompt=400,
    mean_output=16,
    waiting_tokens=0,
    chunk_tokens=400,
    max_rows=4,
    max_steps=1,
    max_prefills=2,
    most_tokens=400,
)


def segment(num_tokens: int) -> UnitRan:
    """A segment of the whole body."""
    return replace(RAN, stage=Stage.SEGMENT, end_us=TOKEN_US * num_tokens, num_tokens=num_tokens, chunk=1)


def step(**changed: object) -> UnitRan:
    """A step of four rows."""
    return replace(RAN, **{"end_us": STEP_US, "num_rows": 4, "num_tokens": 4, "step": 1, **changed})  # type: ignore[arg-type]


def measured(*units: UnitRan, return_us: int = 1000) -> Measures:
    """What a mesh with these times has measured."""
    measures = Measures(BODY, token_bytes=1, trips=RoundTrips(return_us - 500), lane_bytes_per_us=1e6)
    known = [segment(tokens) for tokens in (50, 100, 200, 400)]
    measures.take_timeline(Timeline((*known, *(step() for _ in range(4)), *units), (), 0, 0))
    measures.take_step(StepDone(99, (), 0, 500))
    return measures


def ride(measures: Measures, *, longest_us: float | None = None) -> Ride:
    """The best ride."""
    best = best_ride(Forecast(measures, QUEUE), max_steps=1, longest_us=longest_us)
    assert best is not None
    return best


def test_apart_a_round_is_a_step_and_its_prefill_or_its_return() -> None:
    """Four rows bring 100 tokens of prompts: 10 ms of prefill beside 10 ms of step. That does not cover 30 ms."""
    near, far = measured(), measured(return_us=30_000)
    assert round_apart_us(Forecast(near, QUEUE), max_steps=1) == pytest.approx(20_000)
    assert round_apart_us(Forecast(far, QUEUE), max_steps=1) == pytest.approx(40_000)


def test_a_ride_leaves_prefill_to_cover_the_return() -> None:
    """A step has 100 tokens. In a return of 5 ms 50 run alone; as long as a step a chunk is free, so the rest rides."""
    far = ride(measured(return_us=5000))
    assert far.chunk_tokens == 75
    assert far.round_us == pytest.approx(STEP_US + 5000)


def test_where_there_is_no_return_each_step_rides_in_all_of_its_prefill() -> None:
    """One place: 100 tokens a step and four rows, a quarter of a prompt. Less would make thin steps."""
    best = ride(measured(return_us=501))
    assert best.chunk_tokens == 100
    assert best.round_us == pytest.approx(104 * TOKEN_US + 501)


def test_where_prefill_is_scarce_riding_gives_nothing() -> None:
    """A return of 30 ms takes all cover that there is: a round is no shorter than a step and its return."""
    far = measured(return_us=30_000)
    assert ride(far).round_us == pytest.approx(40_000, rel=0.02)


def test_a_ride_keeps_the_time_that_is_asked_for() -> None:
    """A chunk with a step in it takes F; where that is over the time for each size, there is no ride."""
    measures = measured(return_us=501)
    assert ride(measures, longest_us=STEP_US).chunk_tokens * 1.5 <= 100
    assert best_ride(Forecast(measures, QUEUE), max_steps=1, longest_us=STEP_US - 1) is None


def test_what_fused_units_take_is_learnt_and_fools_no_other_measure() -> None:
    """They took a half more than prefill of as many tokens: so much is expected of others, and nothing else changed."""
    rider = Rider(1, 4, 4)
    fused = replace(
        RAN, stage=Stage.FUSED_SEGMENT, end_us=1500 * 204 // 10, num_tokens=204, num_rows=5, chunk=1, rider=rider
    )
    plain, taught = measured(), measured(*[fused] * 200)
    assert plain.fused_us(200, num_rows=4) == pytest.approx(204 * TOKEN_US)
    assert taught.fused_us(200, num_rows=4) == pytest.approx(1.5 * 204 * TOKEN_US, rel=0.01)
    assert taught.layer_by_tokens.at(300) == plain.layer_by_tokens.at(300)
    assert taught.step_by_rows.at(4) == plain.step_by_rows.at(4)


def test_a_step_in_two_parts_is_one_step_to_the_measures() -> None:
    """Half of the body alone says what all of it takes; its time in the cloud is that of both parts."""
    half = step(stage=Stage.BOARDING, stop=6, end_us=STEP_US, step=7)
    rest = replace(RAN, stage=Stage.FUSED_SEGMENT, start=6, end_us=9000, num_tokens=204, chunk=1, rider=Rider(7, 4, 4))
    measures = measured(*[half] * 32, return_us=100_000)
    assert measures.step_by_rows.at(4) > 1.5 * STEP_US
    measures = measured(return_us=100_000)
    measures.take_timeline(Timeline((half,), (), 0, 0))
    measures.take_step(StepDone(7, (), 50_000, 500))
    assert measures.trips.shortest_us == 100_000 - 500, "the step is not over in the cloud"
    measures.take_timeline(Timeline((rest,), (), 0, 0))
    assert measures.trips.shortest_us == 50_000 - STEP_US - 9000


def test_a_chunk_that_has_begun_takes_rows_unless_all_prefill_has_to_cover() -> None:
    """Nearly from its start where a step asks for more prefill than a return; not at all where it asks for less."""
    near, farther = (ride(measured(return_us=return_us)).from_share for return_us in (600, 30_000))
    assert 0.0 <= near < 0.1
    assert farther == 1.0
