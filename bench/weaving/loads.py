"""The loads of the bench, by their letters and names.

Knows lengths, arrivals, batch sizes, and how the steady state of each load is found. Does not know engines.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from edgeweave.sim.load import Arrival, Load, poisson, read_trace, uniform_load
from edgeweave.sim.loads import SEED, load_named

Prompt = tuple[int, ...]

TRACE = Path(__file__).parents[1] / "traces" / "azure_2023_conversation_150.csv"
TRACE_REQUESTS = 150
TRACE_DIVISOR = 8
WARM_UP_STEP = 3
"""By so many tokens the outputs of a warm-up differ."""
FIRST_ID = 3
"""Lower ids are special tokens in most vocabularies."""


class Steady(Enum):
    """Which part of a run is its steady state, ramp and drain cut off.

    `REPLENISHED`: from the first finished request to the last submitted one, while each that ends is followed by
    another. `PREFILL`: from the first to the last first token. `DECODE`: from the last first token to the first finish.
    """

    REPLENISHED = "replenished"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class BenchLoad:
    """A load, how many sequences one decode step may hold, and where its steady state is."""

    name: str
    title: str
    load: Load
    max_batch_size: int
    steady: Steady
    is_open: bool = False

    @property
    def num_output_tokens(self) -> tuple[int, ...]:
        """Tokens of each output."""
        return tuple(arrival.num_output_tokens for arrival in self.load.arrivals)

    @property
    def num_later_tokens(self) -> int:
        """Output tokens that decode steps make: all but the first of each request."""
        return sum(self.num_output_tokens) - len(self.load.arrivals)

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(arrival.num_prompt_tokens for arrival in self.load.arrivals)

    def arriving(self, *, rate_per_s: float) -> "BenchLoad":
        """Return the same requests, coming as a Poisson process of `rate_per_s`; one rate, one schedule."""
        arrivals = poisson(self.load.arrivals, rate_per_s=rate_per_s, seed=SEED)
        return replace(self, load=replace(self.load, arrivals=arrivals))

    def first(self, num_requests: int) -> "BenchLoad":
        """Return the first requests of this load alone."""
        return replace(self, load=replace(self.load, arrivals=self.load.arrivals[:num_requests]))

    def prompts(self, *, vocab_size: int) -> list[Prompt]:
        """Return the prompts, drawn from a seed that depends on the name alone."""
        return _drawn(f"{SEED} {self.name}", self.load.arrivals, vocab_size=vocab_size)


def bench_loads(*, trace: Path = TRACE) -> dict[str, BenchLoad]:
    """Return all loads by name; `C` takes its lengths from `trace`.

    Raises:
        InvalidRequestError: the trace cannot be read.
    """
    decode_only = uniform_load("decode", num_requests=16, prompt_tokens=(8, 8), output_tokens=(128, 128), seed=SEED)
    loads = [
        BenchLoad("A", "balanced", load_named("balanced"), 8, Steady.REPLENISHED),
        BenchLoad("B", "prefill-rich", load_named("prefill-rich"), 16, Steady.REPLENISHED),
        BenchLoad("prefill", "prefill only", load_named("prefill-only"), 16, Steady.PREFILL),
        BenchLoad("decode", "decode only", decode_only, 16, Steady.DECODE),
        BenchLoad("C", "conversation trace", _trace_load(trace), 16, Steady.REPLENISHED, is_open=True),
    ]
    return {load.name: load for load in loads}


def warm_up_of(load: BenchLoad) -> BenchLoad:
    """Return a short load of the same kind, under a name, and so with prompts, of its own; all of it comes at once.

    Its outputs have different lengths, so that steps of many numbers of rows are seen.
    """
    outputs = range(WARM_UP_STEP, WARM_UP_STEP * (load.max_batch_size // 2 + 1), WARM_UP_STEP)
    lengths = [*outputs, *outputs] if load.steady is Steady.DECODE else outputs
    arrivals = [
        Arrival(0, arrival.num_prompt_tokens, min(arrival.num_output_tokens, length))
        for arrival, length in zip(load.load.arrivals, lengths, strict=False)
    ]
    return replace(load, name=f"{load.name} warm-up", load=replace(load.load, arrivals=tuple(arrivals)))


def _trace_load(trace: Path) -> Load:
    load = read_trace(trace, divide_by=TRACE_DIVISOR, limit=TRACE_REQUESTS)
    arrivals = tuple(
        Arrival(0, _within(arrival.num_prompt_tokens, 16, 512), _within(arrival.num_output_tokens, 4, 64))
        for arrival in load.arrivals
    )
    return Load("C", arrivals)


def _within(value: int, least: int, most: int) -> int:
    return max(least, min(value, most))


def _drawn(seed: str, arrivals: Sequence[Arrival], *, vocab_size: int) -> list[Prompt]:
    rng = random.Random(seed)  # noqa: S311 - prompts, no secrets
    return [
        tuple(rng.randrange(FIRST_ID, vocab_size) for _ in range(arrival.num_prompt_tokens)) for arrival in arrivals
    ]
