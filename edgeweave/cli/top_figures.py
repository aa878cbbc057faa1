"""The figures of one interval as one JSON object, for programs.

Knows the names; units are in them, shares are of 1, and `null` is what is not known. See docs/bubbles.md.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from edgeweave.cli.top_interval import MeshInterval, engine_words
from edgeweave.client import EngineState
from edgeweave.client.engine_use import EngineUse
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import BubbleCause, Plan
from edgeweave.interleave.plans import PLAN_NAMES
from edgeweave.interleave.recent_times import Quantiles
from edgeweave.interleave.request_totals import RequestEnd


def figures(interval: MeshInterval) -> dict[str, Any]:
    """Return all figures of an interval; what is `in_all` or of the `last_minute` reaches further back."""
    state = interval.state
    engines = {Side.EDGE: state.edge, Side.CLOUD: state.cloud}
    return {
        "state": state.state.name.lower(),
        "session": state.session if state.edge is not None else None,
        "reason": state.reason,
        "interval_s": interval.wall_us / 1e6,
        "plan": _plan(state.plan),
        "engines": {
            side.value: _engine(use, engine)
            for side, engine in engines.items()
            if (use := interval.engines.get(side)) is not None and engine is not None
        },
        "requests": {
            "num_running": state.num_running,
            "num_waiting": state.num_waiting,
            "num_releasing": state.num_releasing,
            "num_preemptions": interval.num_preemptions,
            "num_preemptions_in_all": state.num_preemptions,
            "ended": _ends(interval.ends),
            "ended_in_all": _ends(state.ends),
        },
        "in_flight": {
            "num_chunks": state.num_chunks,
            "mean_steps": interval.steps_in_flight,
            "mean_rows_per_step": interval.rows_per_step,
            "num_decoding": state.num_decoding,
            "chunks_per_s": interval.per_s(interval.num_chunks),
            "steps_per_s": interval.per_s(interval.num_steps),
        },
        "tokens": {
            "num_prefill_tokens": interval.num_prefill_tokens,
            "num_output_tokens": interval.num_output_tokens,
            "prefill_per_s": interval.per_s(interval.num_prefill_tokens),
            "output_per_s": interval.per_s(interval.num_output_tokens),
        },
        "link": _link(interval),
        "last_minute": {
            "queue_time": _quantiles(state.queue_time),
            "time_to_first_token": _quantiles(state.time_to_first_token),
            "time_per_token": _quantiles(state.time_per_token),
        },
    }


def _plan(plan: Plan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    names = {kind: name for name, kind in PLAN_NAMES.items()}
    return asdict(plan) | {"kind": names[plan.kind]}


def _engine(use: EngineUse, engine: EngineState) -> dict[str, Any]:
    bubbles_us = {cause.name.lower(): use.bubbles_us.get(cause, 0) for cause in BubbleCause}
    return {
        "state": engine_words(use),
        "reported_us": use.reported_us,
        "counted_us": use.counted_us,
        "busy_us": use.busy_us,
        "bubbles_us": bubbles_us,
        "idle_us": use.idle_us,
        "busy_share": use.share(use.busy_us),
        "bubble_shares": {name: use.share(bubble_us) for name, bubble_us in bubbles_us.items()},
        "idle_share": use.share(use.idle_us),
        "num_units": sum(unit.num_units for unit in use.units.values()),
        "kv_share": engine.reserved_share,
        "num_kv_blocks": engine.num_blocks,
    }


def _ends(ends: Mapping[RequestEnd, int]) -> dict[str, int]:
    return {end.name.lower(): ends.get(end, 0) for end in RequestEnd}


def _link(interval: MeshInterval) -> dict[str, Any] | None:
    if interval.state.cloud is None:
        return None
    return {
        "rtt_us": interval.state.rtt_us,
        "hidden_share": interval.hidden_share,
        "up_bits_per_s": interval.up_bits_per_s,
        "down_bits_per_s": interval.down_bits_per_s,
    }


def _quantiles(quantiles: Quantiles | None) -> dict[str, Any] | None:
    return None if quantiles is None else asdict(quantiles)
