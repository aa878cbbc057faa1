"""What it gives when rows of steps ride in chunks, and how large those chunks are best.

A round is a step of each group with the prefill that belongs to it, in microseconds of the body; docs/weaving.md works
the arithmetic out. Let a step take S, be outside for R, and have n tokens of prompts that belong to it. A chunk of T
tokens with the step in it takes F, and x tokens run alone while the step is outside:

    apart  S + max(R, prefill of n)        fused  (F + R) max(1, n / (T + x))

Pure functions of a forecast. Decides nothing.
"""

import math
from dataclasses import dataclass

from edgeweave.interleave.forecast import Forecast

NUM_SIZES = 16
"""So many sizes are weighed, up to a whole prompt."""
LARGEST_PART = 1.5
"""An even part of a prompt is so many times the size that is asked for, at most."""
NEARLY = 1.003
"""Of sizes whose rounds are so close to the best the largest is taken: fewer chunks are less to do for everybody."""


@dataclass(frozen=True, slots=True)
class Ride:
    """Rows ride in chunks of `chunk_tokens`, and a round lasts `round_us`.

    A chunk that has begun takes rows after `from_share` of its layers.
    """

    chunk_tokens: int
    round_us: float
    from_share: float


def best_ride(forecast: Forecast, *, max_steps: int, longest_us: float | None = None) -> Ride | None:
    """Return the ride with the shortest round; `None` if no step takes `longest_us` or less with a chunk in it."""
    whole = forecast.whole_tokens
    sizes = sorted({math.ceil(whole * size / NUM_SIZES) for size in range(1, NUM_SIZES + 1)}, reverse=True)
    rounds_us = {
        tokens: _round_us(forecast, tokens, max_steps)
        for tokens in sizes
        if longest_us is None or _fused_us(forecast, round(LARGEST_PART * tokens), max_steps) <= longest_us
    }
    best_us = min(rounds_us.values(), default=0.0)
    for tokens, round_us in rounds_us.items():
        if round_us <= NEARLY * best_us:
            return Ride(tokens, round_us, _from_share(forecast, tokens, max_steps))
    return None


def ride_rows_per_s(forecast: Forecast, ride: Ride, *, max_steps: int) -> float:
    """Return how many rows a second go through the body where they ride like this."""
    return forecast.groups(max_steps) * forecast.rows(max_steps) * 1e6 / max(1.0, ride.round_us)


def round_apart_us(forecast: Forecast, *, max_steps: int) -> float:
    """Return how long a round lasts where chunks and steps run apart, chunks as large as they come."""
    prefill_us = forecast.prefill_us(_tokens(forecast, max_steps), chunk_tokens=forecast.whole_tokens)
    return _longer_us(forecast, max_steps, forecast.step_us(max_steps), prefill_us)


def _round_us(forecast: Forecast, chunk_tokens: int, max_steps: int) -> float:
    """Return how long a round lasts for full steps.

    Where there is less prefill than rides would take, some steps run alone. Where there is more than a ride and a
    return take, it is not run: steps are the thinner for it, and so many more rounds do what one would.
    """
    tokens, step_us = _tokens(forecast, max_steps), forecast.step_us(max_steps)
    ride_share = min(1.0, tokens / chunk_tokens)
    decode_us = ride_share * _fused_us(forecast, chunk_tokens, max_steps) + (1 - ride_share) * step_us
    chunk_us = forecast.prefill_us(chunk_tokens, chunk_tokens=chunk_tokens)
    groups, return_us = forecast.groups(max_steps), forecast.measures.decode_return_us
    alone_us = max(0.0, return_us - (groups - 1) * decode_us)
    taken = groups * ride_share * chunk_tokens + (chunk_tokens * alone_us / chunk_us if chunk_us > 0 else 0.0)
    rounds = max(1.0, groups * tokens / taken) if taken > 0 else 1.0
    return rounds * (groups * decode_us + alone_us)


def _longer_us(forecast: Forecast, max_steps: int, decode_us: float, prefill_us: float) -> float:
    """Return a round: as long as the body works for all groups, or as long as one of them goes round."""
    busy_us = forecast.groups(max_steps) * (decode_us + prefill_us)
    return max(busy_us, decode_us + forecast.measures.decode_return_us)


def _from_share(forecast: Forecast, chunk_tokens: int, max_steps: int) -> float:
    """Return the share of a chunk's layers after which its rest is worth more with rows in it than as cover.

    A microsecond of a ride saves `gain`, one of cover saves itself, as far as returns before the next chunk need it.
    """
    chunk_us = forecast.prefill_us(chunk_tokens, chunk_tokens=chunk_tokens)
    prefill_us = forecast.prefill_us(_tokens(forecast, max_steps), chunk_tokens=chunk_tokens)
    fused_us, return_us = _fused_us(forecast, chunk_tokens, max_steps), forecast.measures.decode_return_us
    if min(chunk_us, prefill_us) <= 0:
        return 1.0
    gain = (chunk_us + forecast.step_us(max_steps) - fused_us) / chunk_us
    needed = return_us / prefill_us
    if gain <= 0 or (gain >= 1 and needed > gain):
        return 1.0
    later = needed - gain * return_us / chunk_us  # before that a ride that waits loses less than it covers
    pays = (needed - gain) / (1 - gain) if gain < 1 else 0.0
    return min(1.0, max(0.0, later, pays))


def _fused_us(forecast: Forecast, chunk_tokens: int, max_steps: int) -> float:
    return forecast.measures.fused_us(chunk_tokens, num_rows=forecast.rows(max_steps))


def _tokens(forecast: Forecast, max_steps: int) -> float:
    """Return the tokens of prompts that belong to a step."""
    return forecast.rows(max_steps) * forecast.prompt_per_row
