"""The state of the mesh as a message: what `WatchMesh` streams."""

from edgeweave.interleave.accounts import Account, Side
from edgeweave.interleave.recent_times import RecentTimes
from edgeweave.interleave.request_totals import RequestTotals
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.session import Session
from edgeweave.interleave.totals import EngineTotals
from edgeweave.v1 import common_pb2
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave.wire.messages import plan_message
from edgeweave_scheduler.keeper import SessionKeeper


def mesh_message(core: SchedulerCore, keeper: SessionKeeper, *, now_us: int) -> pb.WatchMeshResponse:
    """Return the state of the mesh at `now_us` of the scheduler's clock."""
    message = pb.WatchMeshResponse(
        state=pb.SessionState.ValueType(keeper.state.value),
        session=keeper.number,
        reason=keeper.reason or "",
        plan=plan_message(core.plan),
        num_waiting=len(core.waiting),
        num_preemptions=core.num_preemptions,
        num_output_tokens=core.num_output_tokens,
        max_seq_len=core.max_seq_len,
        clock_us=now_us,
    )
    _add_requests(message, core.request_totals, now_us=now_us)
    if core.session is not None:
        _add_session(message, core.session)
    return message


def _add_requests(message: pb.WatchMeshResponse, totals: RequestTotals, *, now_us: int) -> None:
    _set_quantiles(message.queue_time, totals.queue, now_us=now_us)
    _set_quantiles(message.time_to_first_token, totals.first_token, now_us=now_us)
    _set_quantiles(message.time_per_token, totals.per_token, now_us=now_us)
    for end, num_requests in totals.ends.items():
        if num_requests:
            message.ends.add(end=pb.RequestEnd.ValueType(end), num_requests=num_requests)


def _set_quantiles(message: pb.Quantiles, times: RecentTimes, *, now_us: int) -> None:
    """Fill `message`; where there are no times it is left as it is, and so absent."""
    quantiles = times.quantiles(now_us=now_us)
    if quantiles is not None:
        message.num_times = quantiles.num_times
        message.p50_us, message.p90_us, message.p99_us = quantiles.p50_us, quantiles.p90_us, quantiles.p99_us


def _add_session(message: pb.WatchMeshResponse, session: Session) -> None:
    totals = session.totals
    num_live = session.num_live
    message.num_running = num_live
    message.num_releasing = len(session.sequences) - num_live
    message.num_chunks = len(session.chunks)
    message.num_decoding = session.num_decoding
    message.num_chunks_done = totals.num_chunks_done
    message.num_prefill_tokens = totals.num_prefill_tokens
    message.steps_us = totals.steps_us
    message.num_steps_done = totals.num_steps_done
    message.num_departures = session.replay.num_departures
    if session.lanes is not None:
        message.rtt_us = session.measures.trips.shortest_us
        message.prefill_bytes_per_s = session.lanes.prefill_bytes_per_s
    message.outside_us = totals.outside_us
    message.hidden_share = totals.hidden_share
    for side, account in session.accounts.sides.items():
        target = message.edge if side is Side.EDGE else message.cloud
        target.CopyFrom(_engine_message(totals.engines[side], account))


def _engine_message(totals: EngineTotals, account: Account) -> pb.EngineState:
    return pb.EngineState(
        busy_us=totals.busy_us,
        bubbles=[
            pb.BubbleSum(cause=common_pb2.BubbleCause.ValueType(cause), total_us=total_us)
            for cause, total_us in sorted(totals.bubbles_us.items())
        ],
        idle_us=totals.idle_us,
        num_units=totals.num_units,
        num_skipped_rows=totals.num_skipped_rows,
        num_blocks=account.capacity.num_blocks,
        num_free_blocks=account.num_free,
        received_bytes=totals.received_bytes,
        sent_bytes=totals.sent_bytes,
        clock_us=totals.clock_us,
        units=[
            pb.UnitSum(
                stage=common_pb2.Stage.ValueType(stage),
                num_rows=num_rows,
                num_units=total.num_units,
                total_us=total.total_us,
            )
            for (stage, num_rows), total in sorted(totals.units.items())
        ],
    )
