"""All figures of a contest as plain values, for JSON.

Knows names of fields. Leaves nothing out that the page shows.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from contest.engines import Engine
from contest.results import RATIOS, ModelResults
from contest.rounds import Measured


def model_figures(results: ModelResults, engines: Sequence[Engine]) -> dict[str, Any]:
    """Return what was measured on one model as values that JSON holds."""
    model = results.model
    return {
        "model": model.name,
        "num_parameters": model.num_parameters,
        "num_read_by_a_step": model.num_read,
        "settings": {engine: dict(settings) for engine, settings in results.settings.items()},
        "memory_bytes_per_s": results.memory_bytes_per_s,
        "cases": [_case_figures(each, engines) for each in results.measured],
        "profiles": dict(results.profiles),
    }


def _case_figures(measured: Measured, engines: Sequence[Engine]) -> dict[str, Any]:
    speeds = measured.speeds
    ratios = {f"{ours} / {theirs}": speeds.ratio(ours, theirs) for ours, theirs in RATIOS}
    spreads = {engine: speeds.spread(engine) for engine in engines}
    return {
        "case": str(speeds.case),
        **asdict(speeds.case),
        "tokens_per_s": {engine: asdict(spread) for engine, spread in spreads.items() if spread is not None},
        "rounds": speeds.by_engine,
        "ratios": {name: asdict(ratio) for name, ratio in ratios.items() if ratio is not None},
        "outputs": {engine: asdict(verdict) for engine, verdict in measured.verdicts.items()},
        "memory_bytes_per_s": measured.memory_bytes_per_s,
    }
