"""A model, a load and a link whose sums can be worked out by hand."""

from edgeweave.interleave.limits import Limits
from edgeweave.sim.case import Case
from edgeweave.sim.load import Arrival, Load
from edgeweave.sim.profile import LayerTimes, Profile

ROUND = Profile(
    name="round",
    num_layers=10,
    head_layers=1,
    tail_layers=1,
    edge=LayerTimes(step_fixed_us=50, step_row_us=0, prefill_fixed_us=50, prefill_token_us=1),
    cloud=LayerTimes(step_fixed_us=1000, step_row_us=0, prefill_fixed_us=100, prefill_token_us=10),
    logits_row_us=0,
    unit_us=0,
    token_bytes=1000,
)
"""A step of any size is 8 ms in the body and 10 ms in one place; 90 tokens of prefill are 8 and 10 ms as well."""


def alike(num_requests: int, *, prompt_tokens: int, output_tokens: int, max_open: int | None = None) -> Load:
    """Return requests that come at once and are all the same."""
    return Load("alike", (Arrival(0, prompt_tokens, output_tokens),) * num_requests, max_open)


def case_of(load: Load, *, distance_km: float = 0.0, gbit_per_s: float = 8.0, max_batch_size: int = 4) -> Case:
    """Return the case of `load` on `ROUND`, over a link of a byte a nanosecond."""
    limits = Limits(
        max_batch_size=max_batch_size, max_prefill_tokens=512, max_seq_len=512, chunk_tokens=512, max_waiting=1 << 30
    )
    return Case(ROUND, load, limits, distance_km, gbit_per_s)
