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
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from edgeweave.clock import MonotonicClock
from edgeweave.errors import EdgeweaveError
from weaving.campaign import Campaign
from weaving.cells import Table, table_of
from weaving.certificates import certificates
from weaving.command import QUICK_REQUESTS, Wanted, parse
from weaving.engine_kinds import engines_named
from weaving.figures import table_figures
from weaving.loads import BenchLoad, bench_loads
from weaving.machine import machine_line
from weaving.plots import write_plots
from weaving.suites import Part
from weaving.tables import Origin, table_page
from weaving.variants import SPLIT

EMULATED_MESHES = 2
"""Emulated engines sleep: so many meshes at a time do not disturb each other on two cores."""


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    wanted = parse(argv)
    try:
        failures = asyncio.run(bench(wanted))
    except KeyboardInterrupt:
        return 130
    except EdgeweaveError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    for line in failures:
        print(f"FAILED {line}")
    return 1 if failures else 0


async def bench(wanted: Wanted) -> list[str]:
    """Measure all that is wanted, and write it down load by load; return what failed."""
    failures: list[str] = []
    figures: list[dict[str, Any]] = []
    loads = bench_loads(trace=wanted.trace)
    with ExitStack() as stack:
        tls = stack.enter_context(certificates()) if any(part.with_tls for part in wanted.parts) else None
        for part in wanted.parts:
            engines = await engines_named(part.engines, cache=wanted.cache)
            campaign = Campaign(engines, MonotonicClock(), _tell, tls, EMULATED_MESHES, failures)
            for name in part.loads:
                load = loads[name].first(QUICK_REQUESTS) if wanted.is_quick else loads[name]
                table = await _measured_table(campaign, load, part, num_rounds=wanted.num_pairs)
                if table is not None:
                    figures.append(table_figures(table))
                    _write_page(table, wanted)
    if wanted.json_file is not None:
        content = {"command": wanted.shown, "machine": machine_line(), "failures": failures, "tables": figures}
        wanted.json_file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return failures


async def _measured_table(campaign: Campaign, load: BenchLoad, part: Part, *, num_rounds: int) -> Table | None:
    """Return the table of one load; `None` where too much failed to compare anything."""
    variants = [SPLIT[plan] for plan in part.plans]
    measured = await campaign.measure(load, part.places, variants, num_rounds=num_rounds)
    if not measured.is_complete:
        return None
    return table_of(measured.load, trials=measured.trials, runs=measured.runs)


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
