"""Compares the simulator with what emulated engines gave: `python bench/sim_check.py FILE`, FILE from `--json`.

Every emulated cell is simulated with the same cores, profile, load, limits and warm-up. What both ends of a lane take
is not in a profile: for a step it follows from how long it was outside the cloud, for a chunk from what warm lanes
carried, which on two cores is less than the link could. Both are in the file.
Exit code 1 where a throughput is off by more than a tenth, or where two plans that differ by more than 3 % come out in
the other order. Knows the two sets of figures; measures nothing.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from edgeweave.interleave.limits import Limits
from edgeweave.interleave.plans import PlanRequest
from edgeweave.sim.case import Case
from edgeweave.sim.mesh import Shape
from edgeweave.sim.profile import NPU
from edgeweave.sim.run import simulate
from weaving.campaign import OPEN_LOAD_SHARE
from weaving.engines import MAX_PREFILL_TOKENS, MAX_SEQ_LEN
from weaving.loads import BenchLoad, bench_loads, warm_up_of
from weaving.variants import CENTRALIZED, SPLIT

MOST_ERROR = 0.10
LEAST_DIFFERENCE = 0.03
"""Plans that were measured closer than this have no order."""
PIECE_TOKENS = 128
"""Of the edge engine, unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One cell, measured and simulated, in tokens a second. `place` is a distance, or one place."""

    load: str
    place: str
    plan: str
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        """What the simulator is off by, as a share of the measured."""
        return self.simulated / self.measured - 1.0


def pairs_of(results: dict[str, Any]) -> Iterator[Pair]:
    """Simulate every emulated cell of a results file."""
    loads = bench_loads()
    tables = [table for table in results["tables"] if table["engines"] == "emulated"]
    # One chunk warms a lane, and what it carried differs by half from lane to lane: all of them are of one machine.
    lanes_gbit = [cell["lane_gbit"] for table in tables for cell in table["split"]]
    gbit_per_s = median(lanes_gbit) if lanes_gbit else 1.0
    for table in tables:
        yield from _pairs_of_load(table, loads[table["load"]], gbit_per_s)


def _pairs_of_load(table: dict[str, Any], load: BenchLoad, gbit_per_s: float) -> Iterator[Pair]:
    plans = {variant.name: variant.plan for variant in CENTRALIZED}
    if load.is_open:
        capacity = max(_in_one_place(load, plan) for plan in plans.values())
        tokens_each = load.load.num_tokens / len(load.load.arrivals)
        load = load.arriving(rate_per_s=OPEN_LOAD_SHARE * capacity / tokens_each)
    for cell in table["one_place"]:
        simulated = _in_one_place(load, plans[cell["variant"]])
        yield Pair(load.name, "one place", cell["variant"], cell["tokens_per_s"], simulated)
    endpoint_us = _endpoint_us(table, load, gbit_per_s)
    for cell in table["split"]:
        distance_km = cell["place"]["distance_km"]
        shape = _case(load, distance_km, gbit_per_s).shape(SPLIT[cell["variant"]].plan)
        simulated = _simulated(load, replace(shape, piece_tokens=PIECE_TOKENS, endpoint_us=endpoint_us))
        yield Pair(load.name, f"{distance_km:,.0f} km", cell["variant"], cell["tokens_per_s"], simulated)


def _in_one_place(load: BenchLoad, plan: PlanRequest) -> float:
    shape = _case(load, 0.0, 1.0).shape(plan)
    return _simulated(load, replace(shape, one_way_us=None, piece_tokens=MAX_PREFILL_TOKENS))


def _simulated(load: BenchLoad, shape: Shape) -> float:
    return simulate(shape, load.load, warm_up=warm_up_of(load).load).tokens_per_s


def _case(load: BenchLoad, distance_km: float, gbit_per_s: float) -> Case:
    limits = Limits(
        max_batch_size=load.max_batch_size,
        max_prefill_tokens=MAX_PREFILL_TOKENS,
        max_seq_len=MAX_SEQ_LEN,
        chunk_tokens=MAX_PREFILL_TOKENS,
    )
    return Case(NPU, load.load, limits, distance_km, gbit_per_s)


def _endpoint_us(table: dict[str, Any], load: BenchLoad, gbit_per_s: float) -> int:
    """Return what the two ends of a lane take, one way: what is left of a step's return after link and turnaround."""
    rests = [
        cell["decode_return_ms"] * 1000 - _case(load, cell["place"]["distance_km"], gbit_per_s).step_return_us
        for cell in table["split"]
        if cell["decode_return_ms"] is not None
    ]
    return max(0, round(median(rests) / 2)) if rests else 0


def wrong_orders(pairs: Sequence[Pair]) -> list[str]:
    """Return a line for each two plans at one place that come out in the other order."""
    return [
        f"load {one.load}, {one.place}: {one.plan} and {other.plan}"
        for one, other in combinations(pairs, 2)
        if (one.load, one.place) == (other.load, other.place)
        and abs(one.measured - other.measured) > LEAST_DIFFERENCE * max(one.measured, other.measured)
        and (one.measured > other.measured) != (one.simulated > other.simulated)
    ]


def main() -> int:
    """Print all cells, and what is wrong with them."""
    parser = argparse.ArgumentParser(prog="bench/sim_check.py", description="The simulator against emulated engines.")
    parser.add_argument("results", type=Path, help="what bench/weave.py wrote with --json")
    pairs = list(pairs_of(json.loads(parser.parse_args().results.read_text(encoding="utf-8"))))
    table = Table("load", "place", "plan", "measured", "simulated", "off by")
    for pair in pairs:
        figures = (f"{pair.measured:,.0f}", f"{pair.simulated:,.0f}", f"{pair.error:+.1%}")
        table.add_row(pair.load, pair.place, pair.plan, *figures)
    Console().print(table)
    off = [pair for pair in pairs if abs(pair.error) > MOST_ERROR]
    orders = wrong_orders(pairs)
    print(
        f"{len(pairs)} cells, {len(off)} off by more than {MOST_ERROR:.0%}; {len(orders)} pairs of plans out of order"
    )
    for line in orders:
        print(line)
    return 1 if off or orders else 0


if __name__ == "__main__":
    sys.exit(main())
