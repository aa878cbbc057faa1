"""One session at the border of an engine, on the event loop.

Knows reports, lanes, staging and how all of it ends together: when one stream ends, all end, and the compute thread
frees everything. Does not know what the units are, nor edge from cloud.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import structlog

from edgeweave.engine.arrival import Staging
from edgeweave.engine.port import Report
from edgeweave.engine.worker import Runner, Worker
from edgeweave.errors import EdgeweaveError, ProtocolError
from edgeweave.interleave.nouns import Lane, Timeline
from edgeweave.metrics import OwnMeter
from edgeweave.rpc.open_lane import OpenLane
from edgeweave.wire.frames import Frame, Payload, cut_rows

_log = structlog.get_logger(__name__)


class EngineSession:
    """A session that an engine serves. All methods belong to the event loop.

    `engine` is the word for this engine in messages; `row_bytes` is one token's hidden state; `frame_bytes` the size of
    a frame to stay below; `meter` counts what is reported and carried.
    """

    def __init__(
        self,
        number: int,
        *,
        engine: str,
        worker: Worker,
        staging: Staging,
        row_bytes: int,
        frame_bytes: int,
        meter: OwnMeter | None = None,
    ) -> None:
        self.number = number
        self.engine = engine
        self._worker = worker
        self._staging = staging
        self._row_bytes = row_bytes
        self._frame_bytes = frame_bytes
        self._meter = meter or OwnMeter()
        self._runner: Runner | None = None
        self._lanes: dict[Lane, OpenLane] = {}
        self._reports: asyncio.Queue[Report | None] = asyncio.Queue()
        self._told_bytes = {"received": 0, "sent": 0}
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[EdgeweaveError] = self._loop.create_future()
        self._freed = asyncio.Event()

    def begin(self, runner: Runner) -> None:
        """Hand the session to the compute thread."""
        self._runner = runner
        self._worker.open(runner)

    def add_lane(self, lane: OpenLane) -> None:
        """Let the session send on a lane; ProtocolError if it has that lane already, else why it has ended."""
        if self.ended.done():
            raise self.ended.result()
        if lane.lane in self._lanes:
            raise ProtocolError(f"session {self.number} opened its {lane.lane.name.lower()} lane twice")
        self._lanes[lane.lane] = lane
        self._meter.watch(lane)

    def post(self, event: object) -> None:
        """Give a task or an arrival to the core."""
        if self._runner is not None and not self.ended.done():
            self._worker.post(self._runner, event)

    def on_frame(self, lane: Lane, frame: Frame) -> None:
        """Stage a frame, and tell the core what it has to know of it; ProtocolError if it does not fit its unit."""
        arrival = self._staging.add(lane, frame)
        if arrival is not None:
            self.post(arrival)

    async def reports(self) -> AsyncGenerator[Report, None]:
        """Yield what the engine tells the scheduler, until the session ends; then raise why it ended."""
        while (report := await self._reports.get()) is not None:
            yield report
        raise self.ended.result()

    async def freed(self) -> None:
        """Return when everything of the session is free; only after `end`."""
        await self._freed.wait()

    # ---- what the compute thread asks for

    def tell(self, report: Report) -> None:
        """Send a report to the scheduler; a timeline goes with the bytes that the lanes carried meanwhile."""
        if isinstance(report, Timeline):
            report = self._with_bytes(report)
            self._meter.take(report)
        self._reports.put_nowait(report)

    def send(self, lane: Lane, unit: Frame, payload: Payload) -> None:
        """Cut rows of a unit into frames and send them; a failure has no rows."""
        opened = self._lanes.get(lane)
        if opened is not None:
            opened.send([unit] if unit.failure is not None else self._frames(unit, payload))

    def drop(self, lane: Lane, unit: int) -> None:
        """Forget what is staged or unsent of a unit."""
        self._staging.drop(lane, unit)
        opened = self._lanes.get(lane)
        if opened is not None:
            opened.drop(unit)

    def end(self, reason: EdgeweaveError) -> None:
        """End the session; the first reason counts."""
        if self.ended.done():
            return
        _log.info("session_ended", session=self.number, reason=str(reason))
        self.ended.set_result(reason)
        self._reports.put_nowait(None)
        for lane in self._lanes.values():
            lane.end(reason)
        if self._runner is None:
            self._freed.set()
        else:
            self._worker.close(self._runner, self._freed_on_thread)

    def _freed_on_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._freed.set)

    def _frames(self, unit: Frame, payload: Payload) -> list[Frame]:
        return list(cut_rows(payload, unit=unit, row_bytes=self._row_bytes, frame_bytes=self._frame_bytes))

    def _with_bytes(self, timeline: Timeline) -> Timeline:
        received = sum(lane.received_bytes for lane in self._lanes.values())
        sent = sum(lane.sent_bytes for lane in self._lanes.values())
        told, self._told_bytes = self._told_bytes, {"received": received, "sent": sent}
        return replace(timeline, received_bytes=received - told["received"], sent_bytes=sent - told["sent"])
