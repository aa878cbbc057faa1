"""The edge engine's gRPC face: a task stream from the scheduler, and two lanes that it opens to the cloud.

Knows messages, streams and which session is served. A thin layer: the core decides, the runner computes.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import structlog

from edgeweave.clock import Clock
from edgeweave.engine.arrival import Staging
from edgeweave.engine.parts import EdgePart, UnitTime, own_time
from edgeweave.engine.port import Port
from edgeweave.engine.session import EngineSession
from edgeweave.engine.slot import SessionSlot
from edgeweave.engine.tasks import carry_tasks, first_task
from edgeweave.engine.worker import Worker
from edgeweave.errors import EdgeweaveError, MismatchError, ProtocolError
from edgeweave.interleave.edge_core import EdgeCore
from edgeweave.interleave.ledger import Ledger
from edgeweave.interleave.nouns import Attached
from edgeweave.interleave.plans import FIRST_PLAN
from edgeweave.metrics import OwnMeter
from edgeweave.rpc.dialed_lane import LaneOptions
from edgeweave.rpc.lanes import open_lanes
from edgeweave.rpc.options import Keepalive
from edgeweave.rpc.status import Context, telling_errors
from edgeweave.settings.edge import EdgeSettings
from edgeweave.v1 import edge_pb2 as pb
from edgeweave.v1.edge_pb2_grpc import EdgeServiceServicer
from edgeweave.wire.messages import AttachEdge, edge_report_message, edge_task_of
from edgeweave_edge.runner import EdgeRunner

SITE = b""
"""The edge serves the one scheduler of its own site."""
_log = structlog.get_logger(__name__)


class EdgeServicer(EdgeServiceServicer):
    """Serves one session at a time."""

    def __init__(
        self,
        model: EdgePart[Any],
        *,
        worker: Worker,
        clock: Clock,
        settings: EdgeSettings,
        unit_time: UnitTime = own_time,
    ) -> None:
        self._model = model
        self._worker = worker
        self._clock = clock
        self._settings = settings
        self._unit_time = unit_time
        self._slot = SessionSlot()
        self.meter = OwnMeter()

    async def RunEdgeTasks(  # noqa: N802 - named by the contract
        self, requests: AsyncIterator[pb.RunEdgeTasksRequest], context: Context
    ) -> AsyncIterator[pb.RunEdgeTasksResponse]:
        """Serve one session: tasks in, reports out, lanes to the cloud, until one of its streams ends."""
        async with telling_errors(context):
            attach = edge_task_of(await first_task(requests))
            if not isinstance(attach, AttachEdge):
                raise ProtocolError("the first task of a session must be attach")
            self._check(attach)
            session = await self._slot.attach(attach.session, site=SITE, create=lambda: self._create(attach))
            session.tell(self._attached())
            tasks = (edge_task_of(request) async for request in requests)
            self._begin_lanes(session, attach)
            async for report in carry_tasks(session, tasks=tasks, context=context):
                yield edge_report_message(report)

    async def idle(self) -> None:
        """Return when no session is served."""
        await self._slot.idle()

    def end_all(self, reason: EdgeweaveError) -> None:
        """End the session that is served, if any."""
        self._slot.end(reason)

    def _begin_lanes(self, session: EngineSession, attach: AttachEdge) -> None:
        """Carry the lanes of `session` until it ends."""
        carrying = asyncio.create_task(self._carry_lanes(session, attach))
        session.ended.add_done_callback(lambda _: carrying.cancel())

    async def _carry_lanes(self, session: EngineSession, attach: AttachEdge) -> None:
        """Open the lanes, and end the session when one of them ends."""
        if attach.cloud_target is None:
            return
        options = LaneOptions(
            row_bytes=self._model.token_bytes,
            dtype=self._model.dtype,
            max_chunk_tokens=attach.max_chunk_tokens,
            frame_bytes=self._settings.frame_bytes,
            keepalive=Keepalive(self._settings.keepalive_s, self._settings.keepalive_s),
            tls=self._settings.tls,
            prefill_pace=self._settings.prefill_pace,
            link_gbit=self._settings.link_gbit,
        )
        try:
            async with open_lanes(
                attach.cloud_target,
                session=session.number,
                options=options,
                on_frame=session.on_frame,
                clock=self._clock,
            ) as lanes:
                session.add_lane(lanes.prefill)
                session.add_lane(lanes.decode)
                session.tell(lanes.ready)
                session.end(await lanes.ended())
        except EdgeweaveError as error:
            session.end(error)
        except Exception as error:  # noqa: BLE001 - the border of the session: whatever it is, only it ends
            _log.error("lanes_failed", session=session.number, exc_info=error)
            session.end(EdgeweaveError("the lanes failed, see the log of the edge engine"))

    def _check(self, attach: AttachEdge) -> None:
        holds_body = self._model.body.num_layers == 0
        if holds_body != (attach.cloud_target is None):
            has = "all layers" if holds_body else f"no layers of the body {self._model.body}"
            wants = "a cloud" if attach.cloud_target is not None else "none"
            raise MismatchError(
                f"this edge engine holds {has} and the scheduler has {wants}; set split of the edge and cloud of the "
                "scheduler so that they agree"
            )

    def _create(self, attach: AttachEdge) -> EngineSession:
        row_bytes, settings = self._model.token_bytes, self._settings
        staging = Staging(
            row_bytes=row_bytes, dtype=self._model.dtype, largest_bytes=settings.staging_bytes, clock=self._clock
        )
        session = EngineSession(
            attach.session,
            engine="edge",
            worker=self._worker,
            staging=staging,
            row_bytes=row_bytes,
            frame_bytes=settings.frame_bytes,
            meter=self.meter,
        )
        core = EdgeCore(
            FIRST_PLAN,
            Ledger(self._clock.now_us()),
            piece_tokens=settings.head_piece_tokens,
            holds_body=attach.cloud_target is None,
        )
        session.begin(
            EdgeRunner(core, model=self._model, port=Port.of(session), clock=self._clock, unit_time=self._unit_time)
        )
        return session

    def _attached(self) -> Attached:
        model = self._model
        return Attached(
            fingerprint=model.fingerprint,
            kv=model.kv,
            staging_bytes=self._settings.staging_bytes,
            clock_us=self._clock.now_us(),
            body=model.body,
            token_bytes=model.token_bytes,
            vocab_size=model.vocab_size,
            max_positions=model.max_positions,
        )
