"""What an hour of requests costs to simulate, in CPU seconds of one core.

    python bench/sim_speed.py                     12,000 requests like those of a chat service
    python bench/sim_speed.py --trace FILE        those of a trace, thinned evenly to as many
    python bench/sim_speed.py --within-s 60       exit code 1 if it takes longer

Without a trace, lengths are lognormal with the means and the spread of the Azure conversation trace of 2023, cut at its
longest, and arrivals are a Poisson process over the hour; a seed draws both. The mesh is that of the NPU profile at
1,000 km, under the adaptive plan. Knows loads and the clock of this process; what is simulated is `edgeweave.sim`.
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest, kind_named
from edgeweave.sim.case import Case
from edgeweave.sim.load import Arrival, Load, poisson, read_trace
from edgeweave.sim.loads import SEED
from edgeweave.sim.mesh import Shape
from edgeweave.sim.profile import NPU
from edgeweave.sim.run import Outcome, simulate

HOUR_S = 3600
NUM_REQUESTS = 12_000
GBIT_PER_S = 10.0


@dataclass(frozen=True, slots=True)
class Lengths:
    """A lognormal distribution of tokens: its mean, its standard deviation by its mean, and the longest kept."""

    mean: float
    spread: float
    longest: int

    def drawn(self, rng: random.Random) -> int:
        """Return one length, at least 1."""
        variance = math.log(1 + self.spread**2)
        return max(1, min(self.longest, round(rng.lognormvariate(math.log(self.mean) - variance / 2, variance**0.5))))


PROMPTS = Lengths(mean=1155, spread=0.96, longest=14_050)
OUTPUTS = Lengths(mean=211, spread=0.77, longest=1_000)


def drawn_load(num_requests: int, *, seed: int = SEED) -> Load:
    """Return as many requests that come over an hour on average."""
    rng = random.Random(seed)  # noqa: S311 - lengths, no secrets
    requests = [Arrival(0, PROMPTS.drawn(rng), OUTPUTS.drawn(rng)) for _ in range(num_requests)]
    return Load("drawn", poisson(requests, rate_per_s=num_requests / HOUR_S, seed=seed))


def thinned(load: Load, num_requests: int) -> Load:
    """Return `num_requests` of a load at most, spread evenly over it."""
    count = len(load.arrivals)
    if count <= num_requests:
        return load
    return replace(load, arrivals=tuple(load.arrivals[i * count // num_requests] for i in range(num_requests)))


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    asked = _parser().parse_args(argv)
    try:
        load = thinned(read_trace(asked.trace), asked.requests) if asked.trace else drawn_load(asked.requests)
        shape = _shape(asked, load)
        begin_s = time.process_time()
        outcome = simulate(shape, load)
    except EdgeweaveError as error:
        print(error, file=sys.stderr)
        return 2
    cpu_s = time.process_time() - begin_s
    print(_report(load, outcome, cpu_s))
    return int(asked.within_s is not None and cpu_s > asked.within_s)


def _shape(asked: argparse.Namespace, load: Load) -> Shape:
    limits = Limits(
        max_batch_size=asked.batch,
        max_prefill_tokens=max(8192, asked.chunk_tokens),
        max_seq_len=max(arrival.num_prompt_tokens + arrival.num_output_tokens for arrival in load.arrivals),
        chunk_tokens=asked.chunk_tokens,
        max_waiting=len(load.arrivals),
    )
    plan = PlanRequest(kind_named(asked.plan))
    return replace(Case(NPU, load, limits, asked.km, GBIT_PER_S).shape(plan), piece_tokens=asked.piece_tokens)


def _report(load: Load, outcome: Outcome, cpu_s: float) -> str:
    prompts = sum(arrival.num_prompt_tokens for arrival in load.arrivals)
    return (
        f"{load.name}: {len(load.arrivals):,} requests, {prompts:,} tokens in, {load.num_tokens - prompts:,} out\n"
        f"simulated: {outcome.wall_us / 1e6:,.0f} s, {outcome.tokens_per_s:,.0f} tokens/s, "
        f"busy {outcome.busy_share:.0%}, {outcome.num_steps:,} steps, {outcome.num_chunks:,} chunks\n"
        f"took: {cpu_s:.1f} CPU s"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sim_speed.py", description="What an hour of requests costs to simulate.")
    parser.add_argument("--trace", type=Path, help="a trace of Azure (.csv) or Mooncake (.jsonl)")
    parser.add_argument("--requests", type=int, default=NUM_REQUESTS, help="how many requests")
    parser.add_argument("--plan", choices=list(PLAN_NAMES), default="adaptive")
    parser.add_argument("--km", type=float, default=1000.0, help="distance between site and cloud")
    parser.add_argument("--batch", type=int, default=64, help="rows of a decode step at most")
    parser.add_argument("--chunk-tokens", type=int, default=2048, help="tokens of one prompt in a chunk")
    parser.add_argument("--piece-tokens", type=int, default=256, help="tokens of a piece of head or tail")
    parser.add_argument("--within-s", type=float, help="exit code 1 if it takes more CPU seconds")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
