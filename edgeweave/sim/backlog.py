"""A load as a backlog: what it would be if it never ran dry, and short enough to be simulated many times.

A mesh that waits for requests loses no throughput, however far away its cloud is. What it can carry shows when all of a
load waits at once. Knows how many requests make up a fair sample. Does not know plans.
"""

from dataclasses import replace

from edgeweave.sim.load import Load

ENOUGH_REQUESTS = 120
BATCHES = 4
"""A sample fills the decode batch so many times, so that filling and emptying it does not decide the outcome."""
MOST_PROMPT_TOKENS = 1_000_000
MOST_OUTPUT_TOKENS = 40_000
OPEN_SHARE = 1.5
"""Requests open for each row of a full step, where the load does not say: some decode, the others are in prefill."""


def as_backlog(load: Load, *, max_batch_size: int) -> Load:
    """Return a fair sample of `load`, all of it waiting from the start.

    A load that comes at once and is short stays as it is.
    """
    stride = -(-len(load.arrivals) // _num_requests(load, max_batch_size=max_batch_size))
    if stride == 1 and not any(arrival.at_us for arrival in load.arrivals):
        return load
    arrivals = tuple(replace(arrival, at_us=0) for arrival in load.arrivals[::stride])
    return replace(load, arrivals=arrivals, max_open=load.max_open or round(OPEN_SHARE * max_batch_size))


def _num_requests(load: Load, *, max_batch_size: int) -> int:
    num_requests = len(load.arrivals)
    prompt_tokens = sum(arrival.num_prompt_tokens for arrival in load.arrivals) / num_requests
    output_tokens = sum(arrival.num_output_tokens for arrival in load.arrivals) / num_requests
    affordable = min(MOST_PROMPT_TOKENS / prompt_tokens, MOST_OUTPUT_TOKENS / output_tokens)
    return max(1, min(num_requests, max(ENOUGH_REQUESTS, BATCHES * max_batch_size), int(affordable)))
