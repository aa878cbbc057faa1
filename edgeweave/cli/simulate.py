"""`edgeweave sim`: what each plan would give, without any hardware.

Knows how a question is put and its answer shown. The simulation is in `edgeweave.sim`.
"""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest, kind_named
from edgeweave.link.profile import LinkProfile
from edgeweave.sim.loads import load_named, profile_named
from edgeweave.sim.mesh import Shape
from edgeweave.sim.run import Outcome, simulate


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
    """Simulate one plan, or all of them, and print a row for each beside the same model in one place.

    Raises:
        InvalidRequestError: a name is not known, or a request of the load can never be served.
    """
    names = list(PLAN_NAMES) if question.plan == "all" else [question.plan]
    plans = [(name, PlanRequest(kind_named(name), num_segments=question.num_segments)) for name in names]
    load = load_named(question.load, divide_by=question.divide_by, limit=question.limit)
    one_place = simulate(_shape(question, PlanRequest(kind_named("1p1d")), link=None), load)
    link = LinkProfile.of_distance(question.distance_km, gbit_per_s=question.bandwidth_gbit)
    table = _table(question, num_requests=len(load.arrivals))
    _add(table, "one place", one_place, one_place)
    for name, plan in plans:
        _add(table, name, simulate(_shape(question, plan, link=link), load), one_place)
    console.print(table)


def _shape(question: Question, plan: PlanRequest, *, link: LinkProfile | None) -> Shape:
    if question.chunk_tokens > question.max_prefill_tokens:
        raise InvalidRequestError(
            f"chunk_tokens {question.chunk_tokens} is over max_prefill_tokens {question.max_prefill_tokens}; lower it"
        )
    limits = Limits(
        max_batch_size=question.max_batch_size,
        max_prefill_tokens=question.max_prefill_tokens,
        max_seq_len=question.max_seq_len,
        chunk_tokens=question.chunk_tokens,
        max_waiting=1 << 30,
    )
    profile = profile_named(question.profile)
    if link is None:
        return Shape(profile, plan, limits, one_way_us=None)
    return Shape(profile, plan, limits, round(link.delay_ns / 1000), link.bytes_per_s / 1e6)


def _table(question: Question, *, num_requests: int) -> Table:
    title = (
        f"{question.load}, {num_requests} requests, {question.profile}, "
        f"{question.distance_km:,.0f} km, {question.bandwidth_gbit:g} Gbit/s"
    )
    table = Table(title=title)
    table.add_column("plan")
    names = ("tokens/s", "of one place", "busy", "TTFT p50 ms", "TTFT p95 ms", "TPOT p50 ms", "steps", "bubbles")
    for name in names:
        table.add_column(name, justify="right")
    return table


def _add(table: Table, name: str, outcome: Outcome, one_place: Outcome) -> None:
    bubbles = ", ".join(
        f"{cause.name.lower().replace('_', ' ')} {spent_us / outcome.wall_us:.0%}"
        for cause, spent_us in sorted(outcome.bubbles_us.items())
        if spent_us * 100 >= outcome.wall_us
    )
    table.add_row(
        name,
        f"{outcome.tokens_per_s:,.0f}",
        f"{outcome.tokens_per_s / one_place.tokens_per_s:.2f}",
        f"{outcome.busy_share:.0%}",
        f"{outcome.first_token_us() / 1000:,.0f}",
        f"{outcome.first_token_us(0.95) / 1000:,.0f}",
        f"{outcome.per_token_us() / 1000:,.1f}",
        f"{outcome.num_steps:,}",
        bubbles or "-",
    )
