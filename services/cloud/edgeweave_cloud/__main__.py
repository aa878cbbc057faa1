"""The composition root of the cloud engine: settings become objects, objects are served.

Run by `python -m edgeweave_cloud` or `edgeweave serve cloud`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from edgeweave.clock import MonotonicClock
from edgeweave.engine.garbage import nothing_collected
from edgeweave.engine.heap import keep_freed_memory
from edgeweave.engine.parts import CloudPart, UnitTime, own_time
from edgeweave.engine.serve import serve_engine
from edgeweave.engine.worker import Worker
from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.split import Split
from edgeweave.metrics import EngineCollector, metrics_served
from edgeweave.rpc.cloud_service import CLOUD_SERVICE, cloud_service_handler
from edgeweave.rpc.lane_servicer import LaneServicer
from edgeweave.rpc.options import Keepalive
from edgeweave.rpc.server import GrpcServer
from edgeweave.settings import CloudSettings, load
from edgeweave.telemetry import configure_logging
from edgeweave_cloud.servicer import CloudServicer


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code: 0 after an orderly stop, 2 for what the user has to change."""
    try:
        settings = load(CloudSettings, sys.argv[1:] if argv is None else argv, os.environ)
        configure_logging(settings.log_level, fmt=settings.log_format, service="cloud")
        with nothing_collected():
            model, unit_time = _load(settings)
            keep_freed_memory()
        uvloop.run(_serve(settings, model, unit_time))
    except EdgeweaveError as error:
        print(f"edgeweave cloud: {error}", file=sys.stderr)  # noqa: T201 - logs may not be set up yet
        return 2
    return 0


def _load(settings: CloudSettings) -> tuple[CloudPart[Any], UnitTime]:
    """Return the body of the model, or what stands for it, and how long its units take."""
    return _loaded(settings.model, settings) if settings.model is not None else _emulated(settings)


def _emulated(settings: CloudSettings) -> tuple[CloudPart[Any], UnitTime]:
    from edgeweave.emulated import ProfileTime, emulated_cloud, keep_exact_time  # noqa: PLC0415 (one of two is needed)

    keep_exact_time()
    part = emulated_cloud(settings)
    return part, ProfileTime(part.facts.profile, is_centralized=False, clock=MonotonicClock())


def _loaded(folder: Path, settings: CloudSettings) -> tuple[CloudPart[Any], UnitTime]:
    from edgeweave.model import KvMemory, load_cloud, use_threads  # noqa: PLC0415 (torch takes seconds)

    use_threads(settings.threads)
    split = Split.parse(settings.split)
    part = load_cloud(
        folder,
        split=split,
        dtype=settings.dtype,
        device=settings.device,
        kv=KvMemory(settings.kv_bytes, settings.block_tokens),
        weights_dtype=settings.weights_dtype,
    )
    return part, own_time


async def _serve(settings: CloudSettings, model: CloudPart[Any], unit_time: UnitTime) -> None:
    clock = MonotonicClock()
    worker = Worker(clock=clock)
    servicer = CloudServicer(
        model,
        worker=worker,
        clock=clock,
        frame_bytes=settings.frame_bytes,
        staging_bytes=settings.staging_bytes,
        unit_time=unit_time,
    )
    keepalive = Keepalive(settings.keepalive_s, settings.keepalive_s)
    server = GrpcServer(settings.listen, keepalive=keepalive, carries_lanes=True, tls=settings.tls)
    lanes = LaneServicer(servicer.accept, clock=clock, prefill_pace=settings.prefill_pace, link_gbit=settings.link_gbit)
    server.add(CLOUD_SERVICE, cloud_service_handler(servicer.run_cloud_tasks, carry_frames=lanes.carry_frames))
    async with metrics_served(settings.metrics_listen, "cloud", EngineCollector("cloud", servicer.meter)):
        await serve_engine(server, service=CLOUD_SERVICE, servicer=servicer, worker=worker, drain_s=settings.drain_s)


if __name__ == "__main__":
    sys.exit(main())
