"""What a decode frame waits for beside prefill transfers, and what pacing them changes.

    python bench/decode_wait.py --settings known,off --gbit 10 --km 1000

The processes are those of a mesh: the edge is this one, the cloud and the links are children. Nothing is computed: the
cloud answers a step with the same bytes, and a chunk with one of the same size or, if transfers go up only, with one
row. A step is sent when the one before is back and a pause is over; two chunks are always under way. All settings
have a session each and take turns, so that what else runs on the machine meets all of them. Knows lanes and the link;
does not know plans or models.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from statistics import median

from edgeweave.clock import MonotonicClock
from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.nouns import DType, Lane, Row
from edgeweave.link import LinkProcess
from edgeweave.link.profile import NS_PER_KM
from edgeweave.rpc.cloud_service import CLOUD_SERVICE, cloud_service_handler
from edgeweave.rpc.dialed_lane import LaneOptions
from edgeweave.rpc.lane_servicer import LaneServicer
from edgeweave.rpc.lanes import Lanes, open_lanes
from edgeweave.rpc.open_lane import OpenLane
from edgeweave.rpc.server import GrpcServer
from edgeweave.wire.frames import Frame, cut_rows

ROW_BYTES = 2 * 5120
CHUNK_ROWS = 2048
CHUNK = bytes(CHUNK_ROWS * ROW_BYTES)
STEP_ROWS = 8
FRAME_BYTES = 256 << 10
PAUSE_S = 0.005
CLOCK = MonotonicClock()


class Answers:
    """The cloud's side of one lane."""

    def __init__(self, lane: OpenLane, *, are_chunks_returned: bool) -> None:
        self._lane = lane
        self._are_chunks_returned = are_chunks_returned
        self._num_rows = 0

    def on_frame(self, frame: Frame) -> None:
        """Answer a step, or the last frame of a chunk."""
        self._num_rows += frame.row_stop - frame.row_start
        if self._num_rows == frame.num_rows:
            self._num_rows = 0
            is_whole = self._lane.lane is Lane.PREFILL and self._are_chunks_returned
            self._lane.send(chunk(frame.unit) if is_whole else [replace(frame, rows=None)])

    def on_end(self, _reason: EdgeweaveError) -> None:
        """The edge has closed the lane."""


@dataclass
class Session:
    """The edge's side of both lanes, with what was measured on them."""

    setting: str
    lanes: Lanes | None = None
    steps: asyncio.Queue[Frame] = field(default_factory=asyncio.Queue)
    chunks: asyncio.Queue[Frame] = field(default_factory=asyncio.Queue)
    num_units: int = 0
    alone_ms: list[float] = field(default_factory=list)
    beside_ms: list[float] = field(default_factory=list)
    chunk_ms: list[float] = field(default_factory=list)
    gbit_per_s: list[float] = field(default_factory=list)

    def on_frame(self, lane: Lane, frame: Frame) -> None:
        """Take what came back."""
        if lane is Lane.DECODE:
            self.steps.put_nowait(frame)
        elif frame.row_stop == frame.num_rows:
            self.chunks.put_nowait(frame)

    async def step_ms(self) -> float:
        """Return how long a step takes there and back."""
        assert self.lanes is not None  # noqa: S101 (set where the session is opened)
        self.num_units += 1
        rows = tuple(Row(sequence, 9, 10) for sequence in range(1, STEP_ROWS + 1))
        payload = CHUNK[: STEP_ROWS * ROW_BYTES]
        begin_us = CLOCK.now_us()
        frame = Frame(self.num_units, 0, STEP_ROWS, STEP_ROWS, DType.BFLOAT16, payload=payload, rows=rows)
        self.lanes.decode.send([frame])
        await self.steps.get()
        elapsed_us = CLOCK.now_us() - begin_us
        await asyncio.sleep(PAUSE_S)
        return elapsed_us / 1000

    def send_chunk(self) -> None:
        """Send a chunk up."""
        assert self.lanes is not None  # noqa: S101 (as above)
        self.num_units += 1
        self.lanes.prefill.send(chunk(self.num_units))

    async def measure(self, num_steps: int) -> None:
        """Measure steps alone, chunks alone, and steps beside chunks."""
        self.alone_ms += [await self.step_ms() for _ in range(num_steps)]
        for _ in range(4):
            begin_us = CLOCK.now_us()
            self.send_chunk()
            await self.chunks.get()
            self.chunk_ms.append((CLOCK.now_us() - begin_us) / 1000)
        await self._measure_beside(num_steps)

    async def _measure_beside(self, num_steps: int) -> None:
        num_chunks, begin_us = 0, CLOCK.now_us()
        self.send_chunk()
        self.send_chunk()
        stepping = asyncio.create_task(self._steps_ms(num_steps))
        while not stepping.done():
            await self.chunks.get()
            num_chunks += 1
            self.send_chunk()
        self.beside_ms += stepping.result()
        elapsed_us = CLOCK.now_us() - begin_us
        self.gbit_per_s.append(num_chunks * len(CHUNK) * 8 / 1000 / elapsed_us)
        for _ in range(2):
            await self.chunks.get()

    async def _steps_ms(self, num_steps: int) -> list[float]:
        return [await self.step_ms() for _ in range(num_steps)]


def chunk(unit: int) -> Iterator[Frame]:
    """Return the frames of a chunk."""
    shared = Frame(unit=unit, num_rows=CHUNK_ROWS, dtype=DType.BFLOAT16)
    return cut_rows(CHUNK, unit=shared, row_bytes=ROW_BYTES, frame_bytes=FRAME_BYTES)


def pace_of(setting: str) -> str:
    """Return the value of `prefill_pace`; `known` is `auto` on a link whose bandwidth was told."""
    return "auto" if setting == "known" else setting


async def serve(settings: list[str], *, gbit: float, are_chunks_returned: bool) -> None:
    """Be the cloud, on a port for each setting, until killed."""
    servers = []
    for setting in settings:
        server = GrpcServer("127.0.0.1:0", carries_lanes=True)
        lanes = LaneServicer(
            lambda _session, lane: Answers(lane, are_chunks_returned=are_chunks_returned),
            clock=CLOCK,
            prefill_pace=pace_of(setting),
            link_gbit=gbit if setting == "known" else None,
        )
        server.add(CLOUD_SERVICE, cloud_service_handler(_no_tasks, carry_frames=lanes.carry_frames))
        await server.start()
        servers.append(server)
    print(json.dumps([server.port for server in servers]), flush=True)
    await asyncio.Event().wait()


async def _no_tasks(_requests: object, _context: object) -> AsyncIterator[object]:
    nothing: tuple[object, ...] = ()
    for response in nothing:
        yield response


@asynccontextmanager
async def cloud(flags: list[str]) -> AsyncIterator[list[int]]:
    """Run the cloud for the time of the block, and give its ports."""
    command = [sys.executable, __file__, "--serve", *flags]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert child.stdout is not None  # noqa: S101 (a pipe was asked for)
        yield json.loads(await child.stdout.readline())
    finally:
        child.kill()
        await child.wait()


async def compare(options: argparse.Namespace) -> list[Session]:
    """Return a measured session for each setting."""
    async with AsyncExitStack() as stack:
        flags = [
            "--settings",
            options.settings,
            "--gbit",
            str(options.gbit),
            *(["--up-only"] if options.up_only else []),
        ]
        targets = [f"127.0.0.1:{port}" for port in await stack.enter_async_context(cloud(flags))]
        sessions = [Session(setting) for setting in options.settings.split(",")]
        link_options = {"delay_ms": options.km * NS_PER_KM / 1e6, "bandwidth_gbit": options.gbit}
        links = [LinkProcess(target=target, **link_options) for target in targets]
        addresses = [stack.enter_context(link).address for link in links]  # all children come before gRPC has threads
        for session, address in zip(sessions, addresses, strict=True):
            await open_session(stack, session, address, gbit=options.gbit)
        for _ in range(options.rounds):
            for session in sessions:
                await session.measure(options.steps)
        return sessions


async def open_session(stack: AsyncExitStack, session: Session, target: str, *, gbit: float) -> None:
    """Open the lanes of a session."""
    lane_options = LaneOptions(
        row_bytes=ROW_BYTES,
        dtype=DType.BFLOAT16,
        max_chunk_tokens=CHUNK_ROWS,
        frame_bytes=FRAME_BYTES,
        prefill_pace=pace_of(session.setting),
        link_gbit=gbit if session.setting == "known" else None,
    )
    opened = open_lanes(target, session=1, options=lane_options, on_frame=session.on_frame, clock=CLOCK)
    session.lanes = await stack.enter_async_context(opened)


def p95(times_ms: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(times_ms)[int(len(times_ms) * 0.95)]


def row_of(session: Session) -> dict[str, object]:
    """Return what was measured, by name."""
    alone, beside = session.alone_ms, session.beside_ms
    return {
        "pace": session.setting,
        "alone p50": round(median(alone), 2),
        "alone p95": round(p95(alone), 2),
        "beside p50": round(median(beside), 2),
        "beside p95": round(p95(beside), 2),
        "extra p50": round(median(beside) - median(alone), 2),
        "extra p95": round(p95(beside) - p95(alone), 2),
        "chunk p50": round(median(session.chunk_ms), 1),
        "Gbit/s": round(median(session.gbit_per_s), 2),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Decode round trips beside prefill transfers; times in ms.")
    parser.add_argument(
        "--settings",
        default="known,auto,off",
        help="values of prefill_pace, which take turns; known: auto, and link_gbit is set [known,auto,off]",
    )
    parser.add_argument("--gbit", type=float, default=10.0, help="rate of the link [10]")
    parser.add_argument("--km", type=float, default=1000.0, help="its length [1000]")
    parser.add_argument("--steps", type=int, default=60, help="steps of each kind a turn [60]")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each setting [3]")
    parser.add_argument("--up-only", action="store_true", help="nothing but one row comes back for a chunk")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.settings.split(","), gbit=options.gbit, are_chunks_returned=not options.up_only))
        return
    rows = [row_of(session) for session in asyncio.run(compare(options))]
    print("  ".join(f"{name:>10}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:>10}" for value in row.values()))


if __name__ == "__main__":
    main()
