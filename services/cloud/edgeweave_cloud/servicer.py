"""The cloud engine's gRPC face: a task stream and two lanes make one session.

Knows messages, streams and which session is served. A thin layer: the core decides, the runner computes.
"""

from collections.abc import AsyncIterator
from typing import Any

from edgeweave.clock import Clock
from edgeweave.engine.arrival import Staging
from edgeweave.engine.parts import CloudPart, UnitTime, own_time
from edgeweave.engine.port import Port
from edgeweave.engine.session import EngineSession
from edgeweave.engine.slot import SessionSlot
from edgeweave.engine.tasks import carry_tasks, first_task
from edgeweave.engine.worker import Worker
from edgeweave.errors import EdgeweaveError, ProtocolError
from edgeweave.interleave.cloud_core import CloudCore
from edgeweave.interleave.cloud_work import CloudChunks
from edgeweave.interleave.ledger import Ledger
from edgeweave.interleave.nouns import Attached, Lane, Released, Timeline
from edgeweave.interleave.plans import FIRST_PLAN
from edgeweave.metrics import OwnMeter
from edgeweave.rpc.open_lane import OpenLane
from edgeweave.rpc.status import Context, telling_errors
from edgeweave.v1 import cloud_pb2 as pb
from edgeweave.wire.frames import Frame
from edgeweave.wire.messages import AttachCloud, cloud_report_message, cloud_task_of
from edgeweave_cloud.runner import CloudRunner


class CloudServicer:
    """Serves one session at a time for one site."""

    def __init__(
        self,
        model: CloudPart[Any],
        *,
        worker: Worker,
        clock: Clock,
        frame_bytes: int,
        staging_bytes: int,
        unit_time: UnitTime = own_time,
    ) -> None:
        self._model = model
        self._worker = worker
        self._clock = clock
        self._frame_bytes = frame_bytes
        self._staging_bytes = staging_bytes
        self._unit_time = unit_time
        self._slot = SessionSlot()
        self.meter = OwnMeter()

    async def run_cloud_tasks(
        self, requests: AsyncIterator[pb.RunCloudTasksRequest], context: Context
    ) -> AsyncIterator[pb.RunCloudTasksResponse]:
        """Serve one session: its tasks in, its reports out, until one of its streams ends."""
        async with telling_errors(context):
            attach = cloud_task_of(await first_task(requests))
            if not isinstance(attach, AttachCloud):
                raise ProtocolError("the first task of a session must be attach")
            session = await self._slot.attach(attach.session, site=attach.site, create=lambda: self._create(attach))
            session.tell(self._attached())
            tasks = (cloud_task_of(request) async for request in requests)
            async for report in carry_tasks(session, tasks=tasks, context=context):
                if isinstance(report, Attached | Released | Timeline):  # the cloud core tells nothing else
                    yield cloud_report_message(report)

    def accept(self, number: int, lane: OpenLane) -> "CloudLane":
        """Take a lane of session `number`; StaleSessionError if it is not the one that is served."""
        session = self._slot.current(number)
        session.add_lane(lane)
        return CloudLane(session, lane.lane)

    async def idle(self) -> None:
        """Return when no session is served."""
        await self._slot.idle()

    def end_all(self, reason: EdgeweaveError) -> None:
        """End the session that is served, if any."""
        self._slot.end(reason)

    def _create(self, attach: AttachCloud) -> EngineSession:
        row_bytes, dtype = self._model.token_bytes, self._model.dtype
        staging = Staging(row_bytes=row_bytes, dtype=dtype, largest_bytes=self._staging_bytes, clock=self._clock)
        session = EngineSession(
            attach.session,
            engine="cloud",
            worker=self._worker,
            staging=staging,
            row_bytes=row_bytes,
            frame_bytes=self._frame_bytes,
            meter=self.meter,
        )
        chunks = CloudChunks(max_early_rows=self._staging_bytes // row_bytes)
        core = CloudCore(self._model.body, FIRST_PLAN, Ledger(self._clock.now_us()), chunks=chunks)
        session.begin(
            CloudRunner(core, model=self._model, port=Port.of(session), clock=self._clock, unit_time=self._unit_time)
        )
        return session

    def _attached(self) -> Attached:
        model = self._model
        return Attached(
            fingerprint=model.fingerprint,
            kv=model.kv,
            staging_bytes=self._staging_bytes,
            clock_us=self._clock.now_us(),
            body=model.body,
            token_bytes=model.token_bytes,
        )


class CloudLane:
    """Where the frames of one lane go: into its session."""

    def __init__(self, session: EngineSession, lane: Lane) -> None:
        self._session = session
        self._lane = lane

    def on_frame(self, frame: Frame) -> None:
        """Stage a frame."""
        self._session.on_frame(self._lane, frame)

    def on_end(self, reason: EdgeweaveError) -> None:
        """End the session: it lives and dies whole."""
        self._session.end(reason)
