"""Measures what the split keeps of the throughput of one place, by load, distance and plan.

    bench/weave.py --engines emulated                     every plan at every distance, in the times of an NPU
    bench/weave.py --engines real --km 1000 --loads A B   real compute, in rounds
    bench/weave.py --suite short                          what `make bench` measures
    bench/weave.py --quick                                does everything work?

Exit code 1: a run failed, or its tokens were not those of the reference; the last lines say which.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from typing import Any

from edgeweave.clock import MonotonicClock
from weaving.campaign import Campaign, Measured
from weaving.cells import Table, table_of
from weaving.certificates import certificates
from weaving.command import QUICK_REQUESTS, Wanted, parse
from weaving.engine_kinds import engines_named
from weaving.figures import table_figures
from weaving.loads import bench_loads
from weaving.machine import machine_line
from weaving.outcome import exit_code
from weaving.plots import write_plots
from weaving.run import Question
from weaving.shares import Machine
from weaving.suites import Part
from weaving.tables import Origin, table_page
from weaving.variants import SPLIT


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    return exit_code(bench(parse(argv)))


async def bench(wanted: Wanted) -> list[str]:
    """Measure all that is wanted, and write it down; return what failed."""
    failures: list[str] = []
    figures: list[dict[str, Any]] = []
    with ExitStack() as stack:
        tls = stack.enter_context(certificates()) if any(part.with_tls for part in wanted.parts) else None
        for part in wanted.parts:
            engines = await engines_named(part.engines, cache=wanted.cache)
            campaign = Campaign(engines, MonotonicClock(), _tell, Machine(), tls, failures)
            async for measured in _measured(campaign, part, wanted):
                if measured.is_complete:
                    table = table_of(measured.load, trials=measured.trials, runs=measured.runs)
                    figures.append(table_figures(table))
                    _write_page(table, wanted)
    if wanted.json_file is not None:
        content = {"command": wanted.shown, "machine": machine_line(), "failures": failures, "tables": figures}
        wanted.json_file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return failures


async def _measured(campaign: Campaign, part: Part, wanted: Wanted) -> AsyncIterator[Measured]:
    """Yield the runs of each load: one after the other on engines that need quiet, else all together at the end.

    Whoever writes a page meanwhile disturbs nothing.
    """
    loads = bench_loads(trace=wanted.trace)
    chosen = [loads[name].first(QUICK_REQUESTS) if wanted.is_quick else loads[name] for name in part.loads]
    variants = [SPLIT[plan] for plan in part.plans]
    questions = [await campaign.question(load) for load in chosen]

    async def measure(question: Question) -> Measured:
        return await campaign.measure(question, part.places, variants, num_rounds=num_rounds)

    num_rounds = wanted.num_pairs if campaign.engines.is_pinned else wanted.num_repeats
    if campaign.engines.is_pinned:
        for question in questions:
            yield await measure(question)
    else:
        for measured in await asyncio.gather(*map(measure, questions)):
            yield measured


def _write_page(table: Table, wanted: Wanted) -> None:
    wanted.out.mkdir(parents=True, exist_ok=True)
    plots = write_plots(table, wanted.out)
    page = table_page(table, Origin(wanted.shown, machine_line()), plots=plots)
    path = wanted.out / f"{table.engines}-{table.load.name.lower()}.md"
    path.write_text(page, encoding="utf-8")
    print(f"wrote {path}", flush=True)


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
