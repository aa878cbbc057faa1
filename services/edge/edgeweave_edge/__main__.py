"""The composition root of the edge engine: settings become objects, objects are served.

Run by `python -m edgeweave_edge` or `edgeweave serve edge`.
"""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from edgeweave.clock import MonotonicClock
from edgeweave.engine.garbage import nothing_collected
from edgeweave.engine.heap import keep_freed_memory
from edgeweave.engine.parts import EdgePart, UnitTime, own_time
from edgeweave.engine.serve import serve_engine
from edgeweave.engine.worker import Worker
from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.split import Split
from edgeweave.metrics import EngineCollector, metrics_served
from edgeweave.rpc.options import Keepalive
from edgeweave.rpc.server import GrpcServer
from edgeweave.settings import EdgeSettings, load
from edgeweave.telemetry import configure_logging
from edgeweave.v1.edge_pb2 import DESCRIPTOR
from edgeweave.v1.edge_pb2_grpc import add_EdgeServiceServicer_to_server
from edgeweave_edge.servicer import EdgeServicer

ALL_LAYERS_HERE = "none"
EDGE_SERVICE: str = DESCRIPTOR.services_by_name["EdgeService"].full_name


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code: 0 after an orderly stop, 2 for what the user has to change."""
    try:
        settings = load(EdgeSettings, sys.argv[1:] if argv is None else argv, os.environ)
        configure_logging(settings.log_level, fmt=settings.log_format, service="edge")
        with nothing_collected():
            model, unit_time = _load(settings)
            keep_freed_memory()
        uvloop.run(_serve(settings, model, unit_time))
    except EdgeweaveError as error:
        print(f"edgeweave edge: {error}", file=sys.stderr)  # noqa: T201 - logs may not be set up yet
        return 2
    return 0


def _load(settings: EdgeSettings) -> tuple[EdgePart[Any], UnitTime]:
    """Return the edge's share of the model, or what stands for it, and how long its units take."""
    return _loaded(settings.model, settings) if settings.model is not None else _emulated(settings)


def _emulated(settings: EdgeSettings) -> tuple[EdgePart[Any], UnitTime]:
    from edgeweave.emulated import ProfileTime, emulated_edge, keep_exact_time  # noqa: PLC0415 (one of two is needed)

    keep_exact_time()
    part = emulated_edge(settings)
    unit_time = ProfileTime(part.facts.profile, is_centralized=part.facts.split is None, clock=MonotonicClock())
    return part, unit_time


def _loaded(folder: Path, settings: EdgeSettings) -> tuple[EdgePart[Any], UnitTime]:
    from edgeweave.model import KvMemory, load_edge, use_threads  # noqa: PLC0415 (torch takes seconds)

    use_threads(settings.threads)
    split = Split.parse(settings.split) if settings.split != ALL_LAYERS_HERE else None
    part = load_edge(
        folder,
        split=split,
        dtype=settings.dtype,
        device=settings.device,
        kv=KvMemory(settings.kv_bytes, settings.block_tokens),
        weights_dtype=settings.weights_dtype,
    )
    return part, own_time


async def _serve(settings: EdgeSettings, model: EdgePart[Any], unit_time: UnitTime) -> None:
    clock = MonotonicClock()
    worker = Worker(clock=clock)
    servicer = EdgeServicer(model, worker=worker, clock=clock, settings=settings, unit_time=unit_time)
    keepalive = Keepalive(settings.keepalive_s, settings.keepalive_s)
    server = GrpcServer(settings.listen, keepalive=keepalive, tls=settings.tls)
    server.add(EDGE_SERVICE, partial(add_EdgeServiceServicer_to_server, servicer))
    async with metrics_served(settings.metrics_listen, "edge", EngineCollector("edge", servicer.meter)):
        await serve_engine(server, service=EDGE_SERVICE, servicer=servicer, worker=worker, drain_s=settings.drain_s)


if __name__ == "__main__":
    sys.exit(main())
