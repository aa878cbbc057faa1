"""The figures of `edgeweave plan`, for people and for programs.

Knows how figures are named and written. Does not compute them, nor say what they mean.
"""

from typing import Any

from rich.console import Console
from rich.table import Table

from edgeweave.cli.plan_advice import UNMEASURABLE, advice, in_ms, in_percent
from edgeweave.interleave.plans import PLAN_NAMES
from edgeweave.sim.reach import FARTHEST_KM
from edgeweave.sim.recommend import Recommendation


def print_report(found: Recommendation, console: Console) -> None:
    """Print the table, and the advice below it."""
    case = found.case
    console.print(
        f"{case.load.name} on {case.profile.name}: {case.distance_km:,.0f} km, {case.gbit_per_s:g} Gbit/s, "
        f"{len(case.load.arrivals)} requests",
        highlight=False,
        markup=False,
    )
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in _rows(found):
        table.add_row(name, value)
    console.print(table)
    for sentence in advice(found):
        console.print(sentence, highlight=False, markup=False)


def as_json(found: Recommendation) -> dict[str, Any]:
    """Return everything that the table shows, as values with their units in their names."""
    case = found.case
    return {
        "load": case.load.name,
        "profile": case.profile.name,
        "distance_km": case.distance_km,
        "bandwidth_gbit": case.gbit_per_s,
        "plan": found.chosen.name,
        "num_segments": found.num_segments,
        "segment_layers": found.segment_layers,
        "max_prefills": found.chosen.max_prefills,
        "max_steps": found.chosen.max_steps,
        "tokens_per_s": found.chosen.outcome.tokens_per_s,
        "one_place_tokens_per_s": found.one_place.tokens_per_s,
        "expected_loss": found.loss,
        "least_loss": found.least_loss,
        "limit": found.ceiling.limit.value,
        "link_mbit_per_s": found.link_mbit_per_s,
        "prefill_needed_ms": found.prefill_needed_us / 1000,
        "prefill_had_ms": None if found.prefill_had_us is None else found.prefill_had_us / 1000,
        "max_loss": found.max_loss,
        "reach_km": found.reach_km,
        "ceiling_reach_km": found.ceiling_km,
        "ratios": _best_ratios(found),
        "advice": advice(found),
    }


def _rows(found: Recommendation) -> list[tuple[str, str]]:
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in _best_ratios(found).items())
    return [
        ("plan", found.chosen.name),
        (
            "chunks, steps in flight",
            f"k {found.chosen.max_prefills or 'set while serving'}, m {found.chosen.max_steps}",
        ),
        ("segments x layers", _cut(found)),
        ("expected throughput", _throughput(found)),
        ("expected loss", _loss(found.loss)),
        ("least loss of any order", f"{_loss(found.least_loss)}; what limits: {found.ceiling.limit.value}"),
        ("all plans, of one place", ratios),
        ("on the link each way", f"{found.link_mbit_per_s:,.0f} Mbit/s of {found.case.gbit_per_s * 1000:,.0f}"),
        ("prefill per decode step", _prefill(found)),
        (
            f"loses {in_percent(found.max_loss)} at most",
            f"{_reach(found.reach_km)} (any order: {_reach(found.ceiling_km)})",
        ),
    ]


def _cut(found: Recommendation) -> str:
    cut = f"{found.num_segments} x {found.segment_layers}"
    return f"set while serving; {cut} cover a decode return each" if found.is_adaptive else cut


def _throughput(found: Recommendation) -> str:
    return f"{found.chosen.outcome.tokens_per_s:,.0f} tokens/s; one place {found.one_place.tokens_per_s:,.0f}"


def _prefill(found: Recommendation) -> str:
    if found.prefill_had_us is None:
        return "nothing decodes"
    return f"{in_ms(found.prefill_needed_us)} needed, the load has {in_ms(found.prefill_had_us)}"


def _best_ratios(found: Recommendation) -> dict[str, float]:
    """Return the best ratio of each plan that was tried."""
    return {name: max(trial.ratio for trial in found.trials if trial.name == name) for name in PLAN_NAMES}


def _loss(loss: float) -> str:
    if loss <= -UNMEASURABLE:
        return f"none, {-loss:.1%} gained"
    return f"{loss:.1%}" if loss >= UNMEASURABLE else "none"


def _reach(reach_km: int | None) -> str:
    if reach_km is None:
        return "at no distance"
    return "anywhere on Earth" if reach_km >= FARTHEST_KM else f"up to {reach_km:,} km"
