"""What a plan is set to, from measured times and from what is open.

Pure functions. Let a step take F whatever its rows, of which a full batch has B, and be outside the cloud for R, the
decode return. docs/weaving.md works out what follows.

- **Cover.** While a step is outside, prefill runs; when the step is back, prefill yields after the layer that it is in.
  So nothing has to be set for that but that prefill is there: `max_prefills` chunks in flight.
- **Fill.** A step with d of B rows missing wastes d / B of what it costs: F, and the part of R that is not covered.
  Prefill that runs before it, although it is ready, brings the rows earlier. But it will not cover a return later.
  Where prefill is scarce, each microsecond of it is one that the cloud will idle, and filling pays from
  d = B R / (F + R) missing rows. Where there is more prefill than returns to cover, it costs nothing: the batch is kept
  full, with one sequence more than it holds, to take the next place that comes free.
- **Catch up.** Prefill that only ever fills returns makes a burst of prompts wait long for first tokens, while decode
  is faster than it has to be. So a stock of half a batch of prompts is kept to cover with, and what waits beyond it is
  worked off in an eighth of the steps of a mean answer: so much of it runs for each step, due or not, up to a chunk.
- **Fuse.** A step that rides in a chunk costs little more than the chunk: its fixed part is saved. But a chunk in which
  rows ride does not cover a return. So prompts are cut such that each step finds a chunk to ride in, and enough of
  prefill is left to cover.
- **Groups.** Groups of rows go round one behind the other: more than one where the return is long against a step and
  prefill does not cover it.

The objective `TTFT` lets prefill run through; `TPOT` bounds what may run between two steps.
"""

import math
from dataclasses import dataclass
from enum import Enum

from edgeweave.interleave.forecast import Forecast
from edgeweave.interleave.fusing import Ride, best_ride, ride_rows_per_s, round_apart_us
from edgeweave.interleave.nouns import Fuse

MAX_PREFILLS = 4
MAX_RIDE_PREFILLS = 6
SHORT_CHUNK = 0.75
"""Prompts have several lengths: the next chunk has to have come when one this short, against the mean, is through."""
RIDE_AHEAD = 3
"""Chunks more where rows ride: one that covers, and of either kind the next: neighbours are often of one prompt."""
MAX_STEPS = 4
STOCK = 0.5
"""Prompts that may wait to cover returns, as a share of a batch."""
CATCH_UP = 0.125
"""Share of the steps of a mean answer in which what waits beyond the stock is to be through."""
FUSE_GAIN = 1.05
"""Rows begin to ride where a round is predicted to be so much faster: finer chunks cost more than is known."""
FUSE_ON_GAIN = 1.02
"""They ride on while it is at least this much faster."""
FUSE_STEPS = 8
"""A chunk that has begun takes rows after so many parts of it: a finer value would change with every report."""
STEPS_GAIN = 1.08
"""Another number of decode groups is used where it is predicted to be at least this much faster."""


class Objective(Enum):
    """What the adaptive plan is after."""

    THROUGHPUT = "throughput"
    TPOT = "tpot"
    TTFT = "ttft"


@dataclass(frozen=True, slots=True)
class Goal:
    """The objective, and what it keeps, in microseconds: `TPOT` a time per output token, `TTFT` one to the first.

    `None`: as short as can be for `TTFT`; no bound for `TPOT`.
    """

    objective: Objective = Objective.THROUGHPUT
    tpot_slo_us: int | None = None
    ttft_slo_us: int | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """What an adaptive plan is set to. `longest_layers` bounds a segment, `None`: the whole body may run in one.

    With `may_fuse` rows ride in chunks, of `ride_tokens` if that is known; in one that has begun after
    `fuse_after_layers` of it.
    """

    min_segment_us: int
    fill_to_rows: int
    fill_row_us: int
    longest_layers: int | None
    max_prefills: int
    max_steps: int
    may_fuse: bool = False
    ride_tokens: int | None = None
    fuse_after_layers: int = 0


def adapt(forecast: Forecast, goal: Goal, *, fuse: Fuse = Fuse.AUTO) -> Values:
    """Return what the plan is to be set to, while this is the load and these are the times."""
    longest_us = _longest_us(forecast, goal)
    max_steps = _max_steps(forecast, fuse=fuse)
    fill_to_rows = _fill_to_rows(forecast, max_steps)
    ride = _ride(forecast, longest_us, max_steps, fuse=fuse)
    return Values(
        min_segment_us=_within(_shortest_us(forecast, goal), longest_us),
        fill_to_rows=fill_to_rows,
        fill_row_us=_within(forecast.prompt_us, longest_us and longest_us / fill_to_rows),
        longest_layers=_layers_within(forecast, longest_us),
        max_prefills=_max_prefills(forecast, ride),
        max_steps=max_steps,
        may_fuse=fuse is Fuse.ALWAYS or ride is not None,
        ride_tokens=ride.chunk_tokens if ride is not None else None,
        fuse_after_layers=_layers_after(forecast, ride.from_share) if ride is not None else 0,
    )


def balanced_segments(forecast: Forecast) -> int | None:
    """Return into how many segments a fixed plan cuts a chunk: none shorter than a decode return.

    A plan that alternates runs one segment for each step. So none is shorter either than the prefill that a full step
    asks for: else decode comes back too soon, prefill starves, and the steps are thin. `None`: not known yet.
    """
    if not (forecast.measures.are_known and forecast.measures.has_steps):
        return None
    full_step_us = forecast.prefill_per_row_us * forecast.queue.max_rows
    shortest_us = max(forecast.measures.decode_return_us, full_step_us)
    return max(1, int(forecast.chunk_us / shortest_us)) if shortest_us > 0 else None


def _shortest_us(forecast: Forecast, goal: Goal) -> float:
    """Return how long prefill runs for each step at least, although one is ready."""
    if _runs_through(forecast, goal):
        return forecast.chunk_us
    surplus_us = forecast.surplus_us(stock=STOCK * forecast.queue.max_rows)
    return min(forecast.chunk_us, surplus_us / max(1.0, CATCH_UP * forecast.queue.mean_output))


def _runs_through(forecast: Forecast, goal: Goal) -> bool:
    """Whether a chunk is not interrupted: the first token counts, and would be late."""
    if goal.objective is not Objective.TTFT:
        return False
    return goal.ttft_slo_us is None or forecast.first_token_us > goal.ttft_slo_us


def _longest_us(forecast: Forecast, goal: Goal) -> float | None:
    """Return how long prefill may run between two steps to keep the time per token, `None`: as long as it likes."""
    if goal.objective is not Objective.TPOT or goal.tpot_slo_us is None:
        return None
    return max(1.0, goal.tpot_slo_us - forecast.measures.step_by_rows.at(forecast.queue.max_rows))


def _max_steps(forecast: Forecast, *, fuse: Fuse) -> int:
    """Return how many decode groups give most: as many as now, unless others are clearly better."""
    now = forecast.queue.max_steps
    if not forecast.measures.has_steps:
        return now
    gives = {steps: _gives(forecast, steps, fuse) for steps in {now, *range(1, MAX_STEPS + 1)}}
    best = max(range(1, MAX_STEPS + 1), key=lambda steps: gives[steps])
    return best if gives[best] > STEPS_GAIN * gives[now] else now


def _gives(forecast: Forecast, max_steps: int, fuse: Fuse) -> float:
    """Return the rows a second that so many groups give, apart or with rows that ride."""
    apart = forecast.rows_per_s(max_steps=max_steps, max_prefills=MAX_PREFILLS)
    ride = best_ride(forecast, max_steps=max_steps) if fuse is not Fuse.NEVER else None
    return apart if ride is None else max(apart, ride_rows_per_s(forecast, ride, max_steps=max_steps))


def _fill_to_rows(forecast: Forecast, max_steps: int) -> int:
    """Return for how many rows a step waits: fewer than all where prefill is scarce, one more where it is ample."""
    most = max_steps * forecast.queue.max_rows
    if not forecast.measures.has_steps:
        return most + 1
    fixed_us, return_us = forecast.measures.step_by_rows.fixed, forecast.measures.decode_return_us
    whole_us = fixed_us + return_us
    return most + 1 - math.floor(forecast.scarcity(max_steps) * most * return_us / whole_us) if whole_us else most + 1


def _ride(forecast: Forecast, longest_us: float | None, max_steps: int, *, fuse: Fuse) -> Ride | None:
    """Return the ride that gives most, if it is worth it: clearly at first, then while it still is."""
    if fuse is Fuse.NEVER or not forecast.measures.has_steps:
        return None
    longest_us = None if longest_us is None else longest_us + forecast.step_us(max_steps)
    ride = best_ride(forecast, max_steps=max_steps, longest_us=longest_us)
    if fuse is Fuse.ALWAYS:
        return ride
    least_gain = FUSE_ON_GAIN if forecast.queue.fuses else FUSE_GAIN
    is_worth = ride is not None and ride.round_us * least_gain <= round_apart_us(forecast, max_steps=max_steps)
    return ride if is_worth else None


def _layers_after(forecast: Forecast, share: float) -> int:
    num_layers = forecast.measures.body.num_layers
    return round(share * FUSE_STEPS) * num_layers // FUSE_STEPS


def _max_prefills(forecast: Forecast, ride: Ride | None) -> int:
    """Return how many chunks in flight keep the body fed: one, and as many short ones as the handoff of one takes.

    Where rows ride, more: some cover returns, and others have to be there to ride in.
    """
    chunk_tokens = forecast.queue.chunk_tokens if ride is None else ride.chunk_tokens
    chunk_us = forecast.prefill_us(chunk_tokens, chunk_tokens=chunk_tokens)
    if chunk_us <= 0:
        return 2
    further = max(1, math.ceil(forecast.measures.handoff_us(chunk_tokens) / (SHORT_CHUNK * chunk_us)))
    return min(MAX_PREFILLS, 1 + further) if ride is None else min(MAX_RIDE_PREFILLS, 1 + further + RIDE_AHEAD)


def _within(time_us: float, longest_us: float | None) -> int:
    return round(time_us if longest_us is None else min(time_us, longest_us))


def _layers_within(forecast: Forecast, longest_us: float | None) -> int | None:
    layer_us = forecast.measures.layer_by_tokens.at(forecast.queue.chunk_tokens)
    return max(1, int(longest_us / layer_us)) if longest_us is not None and layer_us > 0 else None
