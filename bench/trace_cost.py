"""What tracing costs: the same load with no spans, with spans that are kept, and with spans that go to a collector.

    python bench/trace_cost.py                               in the times of an NPU, load B at 1,000 km
    python bench/trace_cost.py --engines real --pairs 5      real compute

Each round measures every way to trace once, every other round in reverse, each on a mesh of its own; ratios are to the
run without spans of the same round. `dead` sends to a port where nobody listens, `deaf` to one that takes connections
and never answers: neither may cost more. The collector is a process of its own. Exit code 1: a run failed, or its
tokens were not those of the reference.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as pb_grpc

from edgeweave.cli.mesh import Mesh
from edgeweave.client import Client
from edgeweave.clock import MonotonicClock
from edgeweave.errors import EdgeweaveError
from weaving.answers import tokens_per_s
from weaving.campaign import round_order
from weaving.cpu import control_share
from weaving.engine_kinds import engines_named
from weaving.engines import Engines, options_for
from weaving.loads import TRACE, bench_loads
from weaving.meshes import on_site_core
from weaving.places import Place
from weaving.ratios import Ratio, paired
from weaving.run import Key, Question, Run, measure
from weaving.suites import ENGINES
from weaving.variants import SPLIT

KEEP_SPANS = 50_000
OFF = "off"
_GIVES_WAY = 19
WAYS = (OFF, "kept", "sent", "dead", "deaf")
"""Spans are not made, or kept for the timeline page, or kept and sent to a collector that is there, dead or deaf."""


@dataclass(frozen=True, slots=True)
class Traced:
    """One run and the spans that were kept of it."""

    run: Run
    num_spans: int


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where spans are sent to, by way."""

    by_way: Mapping[str, str]

    def words(self, way: str) -> list[str]:
        """Return the flags of the scheduler."""
        kept = ["--keep-spans", "0" if way == OFF else str(KEEP_SPANS)]
        return [*kept, *(["--otlp-endpoint", self.by_way[way]] if way in self.by_way else [])]


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    options = _parser().parse_args(argv)
    if options.collect:
        asyncio.run(_collect())
        return 0
    try:
        return asyncio.run(compare(options))
    except EdgeweaveError as error:
        print(f"trace_cost: {error}", file=sys.stderr)
        return 2


async def compare(options: argparse.Namespace) -> int:
    """Measure all rounds and print the table; return the exit code."""
    engines = await engines_named(options.engines, cache=options.cache)
    load = bench_loads(trace=TRACE)[options.load]
    load = load.first(options.requests) if options.requests else load
    prompts = load.prompts(vocab_size=engines.vocab_size)
    references = await engines.references(prompts, load.num_output_tokens)
    question = Question(load, prompts, references, engines.vocab_size)
    by_way: dict[str, dict[int, Traced]] = {way: {} for way in options.ways}
    num_bad = 0
    async with _endpoints() as endpoints:
        for number in range(options.pairs):
            order = round_order([replace(SPLIT["adaptive"], name=way) for way in options.ways], number=number)
            for variant in order:
                traced = await _run(engines, question, options.km, variant.name, number, endpoints)
                by_way[variant.name][number] = traced
                num_bad += not traced.run.check.is_good
                print(f"{traced.run.key}: {tokens_per_s(traced.run.answers):,.0f} tokens/s", flush=True)
    for line in table(by_way):
        print(line)
    return 1 if num_bad else 0


async def _run(engines: Engines, question: Question, km: float, way: str, number: int, endpoints: Endpoints) -> Traced:
    """Measure the load once on a mesh of its own."""
    place = Place(km)
    options = options_for(engines, question.load, place)
    flags = {**options.extra_flags, "scheduler": [*options.extra_flags["scheduler"], *endpoints.words(way)]}
    key = Key(engines.name, question.load.name, place, way, number)
    async with Mesh.start(replace(options, extra_flags=flags)) as mesh:
        with on_site_core(is_pinned=engines.is_pinned):
            run = await measure(mesh, question, SPLIT["adaptive"], key=key, clock=MonotonicClock())
        async with Client(mesh.scheduler_address) as client:
            num_spans = len([span async for span in client.read_spans()])
    return Traced(run, num_spans)


def table(by_way: Mapping[str, Mapping[int, Traced]]) -> list[str]:
    """Return the lines of the table."""
    lines = ["spans   tokens/s   to none            scheduler   control   spans kept"]
    for way, runs in by_way.items():
        shares = [each.run.cpu for each in runs.values()]
        throughput = median(tokens_per_s(each.run.answers) for each in runs.values())
        ratio = _ratio(runs, by_way.get(OFF, {}))
        lines.append(
            f"{way:<7} {throughput:8,.0f}   {ratio!s:<18} {median(each['scheduler'] for each in shares):9.1%} "
            f"{median(map(control_share, shares)):9.1%} {median(each.num_spans for each in runs.values()):12,.0f}"
        )
    return lines


def _ratio(runs: Mapping[int, Traced], base: Mapping[int, Traced]) -> Ratio | None:
    def by_round(each: Mapping[int, Traced]) -> dict[int, float]:
        return {number: tokens_per_s(traced.run.answers) for number, traced in each.items()}

    return paired(by_round(runs), by_round(base))


class _Collector(pb_grpc.TraceServiceServicer):
    """Takes spans and forgets them."""

    async def Export(  # noqa: N802 - named by the contract
        self, _request: pb.ExportTraceServiceRequest, _context: object
    ) -> pb.ExportTraceServiceResponse:
        """Take spans."""
        return pb.ExportTraceServiceResponse()


async def _collect() -> None:
    """Be the collector, on a free port, until killed. It would be another machine's: here it gives way to the mesh."""
    os.nice(_GIVES_WAY)
    server = grpc.aio.server()
    pb_grpc.add_TraceServiceServicer_to_server(_Collector(), server)  # type: ignore[no-untyped-call]  # untyped there
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


@asynccontextmanager
async def _endpoints() -> AsyncIterator[Endpoints]:
    """Run a collector, hold a port that nobody serves, and listen on one without ever answering."""
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, "--collect", stdout=asyncio.subprocess.PIPE)
    with socket.socket() as dead, socket.socket() as deaf:
        dead.bind(("127.0.0.1", 0))
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        try:
            if child.stdout is None:
                raise RuntimeError("a pipe was asked for")
            ports = {"sent": int(await child.stdout.readline())}
            ports |= {"dead": dead.getsockname()[1], "deaf": deaf.getsockname()[1]}
            yield Endpoints({way: f"http://127.0.0.1:{port}" for way, port in ports.items()})
        finally:
            child.kill()
            await child.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What tracing costs.")
    choice = partial(parser.add_argument, metavar="NAME")
    choice("--engines", choices=ENGINES, default=ENGINES[0], help=f"{', '.join(ENGINES)} [{ENGINES[0]}]")
    choice("--load", choices=("A", "B", "prefill", "decode"), default="B", help="A, B, prefill, decode [B]")
    choice("--ways", nargs="+", choices=WAYS, default=WAYS, help=f"{', '.join(WAYS)} [all]")
    parser.add_argument("--km", type=float, default=1000.0, help="fibre to the cloud [1000]")
    parser.add_argument("--pairs", type=int, default=3, help="rounds [3]")
    parser.add_argument("--requests", type=int, help="only the first so many requests of the load")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder of models and references")
    parser.add_argument("--collect", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
