"""A load as a backlog: everything waits, and it is short enough to be simulated many times."""

from edgeweave.sim.backlog import BATCHES, ENOUGH_REQUESTS, MOST_PROMPT_TOKENS, as_backlog
from edgeweave.sim.load import Arrival, Load
from edgeweave.sim.loads import LOADS, load_named


def trace(num_requests: int, *, prompt_tokens: int = 100) -> Load:
    """Return requests that come one a second; the n-th has n more tokens of prompt."""
    return Load("trace", tuple(Arrival(n * 1_000_000, prompt_tokens + n, 10) for n in range(num_requests)))


def test_a_short_load_that_comes_at_once_stays_as_it_is() -> None:
    """So what is planned is what `edgeweave sim` shows."""
    for name in LOADS:
        assert as_backlog(load_named(name), max_batch_size=8) == load_named(name)


def test_a_trace_waits_from_the_start() -> None:
    """Some more are open than fit into a step: while those decode, others are in prefill."""
    backlog = as_backlog(trace(10), max_batch_size=8)
    assert {arrival.at_us for arrival in backlog.arrivals} == {0}
    assert len(backlog.arrivals) == 10
    assert backlog.max_open == 12


def test_a_sample_is_taken_from_the_whole_trace() -> None:
    """Evenly, so that its mix is the trace's."""
    backlog = as_backlog(trace(12_000), max_batch_size=8)
    lengths = [arrival.num_prompt_tokens for arrival in backlog.arrivals]
    assert len(lengths) == ENOUGH_REQUESTS
    assert (lengths[0], lengths[-1]) == (100, 100 + 119 * 100)


def test_a_large_batch_is_filled_several_times() -> None:
    """Else a run would be all filling and emptying."""
    load = Load("even", (Arrival(0, 100, 10),) * 12_000)
    num_requests = len(as_backlog(load, max_batch_size=64).arrivals)
    assert 0.9 * BATCHES * 64 < num_requests <= BATCHES * 64
    assert num_requests > ENOUGH_REQUESTS


def test_long_prompts_are_fewer() -> None:
    """A sample has a bounded number of tokens."""
    backlog = as_backlog(trace(1000, prompt_tokens=100_000), max_batch_size=8)
    assert sum(arrival.num_prompt_tokens for arrival in backlog.arrivals) <= 1.1 * MOST_PROMPT_TOKENS
