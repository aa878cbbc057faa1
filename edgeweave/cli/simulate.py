"""`edgeweave sim`: what each plan would give, without any hardware.

Knows how a question is put and its answer shown. The simulation is in `edgeweave.sim`.
"""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from edgeweave.cli.sim_limits import sim_limits
from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest, kind_named
from edgeweave.sim.case import Case
from edgeweave.sim.loads import load_named, profile_named
from edgeweave.sim.run import Outcome


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be simulated, in the words of the command line."""

    profile: str
    load: str
    plan: str
    distance_km: float
    bandwidth_gbit: float
    max_batch_size: int
    max_prefill_tokens: int
    max_seq_len: int
    chunk_tokens: int
    num_segments: int | None
    divide_by: int
    limit: int | None


def run_sim(question: Question, *, console: Console) -> None:
    """Simulate one plan, or all of them, and print a row for each beside the best of the same model in one place.

    Raises:
        InvalidRequestError: a name is not known, or a request of the load can never be served.
    """
    names = list(PLAN_NAMES) if question.plan == "all" else [question.plan]
    plans = [(name, PlanRequest(kind_named(name), num_segments=question.num_segments)) for name in names]
    case = _case(question)
    one_place = case.simulate_one_place()
    outcomes = {name: case.simulate(plan) for name, plan in plans}
    table = _table(question, num_requests=len(case.load.arrivals))
    for name, outcome in {"one place": one_place, **outcomes}.items():
        _add(table, name, outcome, one_place)
    console.print(table)
    for name, outcome in outcomes.items():
        console.print(f"{name}: {_bubbles(outcome)}", highlight=False, soft_wrap=True)


def _case(question: Question) -> Case:
    limits = sim_limits(
        max_batch_size=question.max_batch_size,
        max_prefill_tokens=question.max_prefill_tokens,
        max_seq_len=question.max_seq_len,
        chunk_tokens=question.chunk_tokens,
    )
    load = load_named(question.load, divide_by=question.divide_by, limit=question.limit)
    return Case(profile_named(question.profile), load, limits, question.distance_km, question.bandwidth_gbit)


def _table(question: Question, *, num_requests: int) -> Table:
    title = (
        f"{question.load}, {num_requests} requests, {question.profile}, "
        f"{question.distance_km:,.0f} km, {question.bandwidth_gbit:g} Gbit/s"
    )
    table = Table(title=title)
    table.add_column("plan", no_wrap=True)
    for name in ("tokens/s", "of one", "busy", "TTFT p50", "p95 ms", "TPOT ms", "steps"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _add(table: Table, name: str, outcome: Outcome, one_place: Outcome) -> None:
    table.add_row(
        name,
        f"{outcome.tokens_per_s:,.0f}",
        f"{outcome.tokens_per_s / one_place.tokens_per_s:.2f}",
        f"{outcome.busy_share:.0%}",
        f"{outcome.first_token_us() / 1000:,.0f}",
        f"{outcome.first_token_us(0.95) / 1000:,.0f}",
        f"{outcome.per_token_us() / 1000:,.1f}",
        f"{outcome.num_steps:,}",
    )


def _bubbles(outcome: Outcome) -> str:
    """Return where the cloud's time went besides work, causes of at least a hundredth."""
    shares = [
        f"{cause.name.lower().replace('_', ' ')} {spent_us / outcome.wall_us:.0%}"
        for cause, spent_us in sorted(outcome.bubbles_us.items())
        if spent_us * 100 >= outcome.wall_us
    ]
    return ", ".join(shares) or "no bubbles"
