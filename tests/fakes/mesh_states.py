"""States of a mesh as the scheduler tells them, for tests that look at two of them."""

from collections.abc import Mapping

from edgeweave.client.mesh_state import MeshState, mesh_state_of
from edgeweave.clock import ManualClock
from edgeweave.interleave.nouns import BubbleCause
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.settings import SchedulerSettings
from edgeweave.v1 import common_pb2
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave_scheduler.driver import Driver
from edgeweave_scheduler.keeper import SessionKeeper
from edgeweave_scheduler.mesh_message import mesh_message

PLAN = common_pb2.Plan(
    plan=3,
    kind=common_pb2.PLAN_KIND_ADAPTIVE,
    max_prefills=2,
    max_steps=1,
    max_batch_size=64,
    next_head_first=True,
    decode_return_us=11_200,
    max_grace_us=10_000,
    fill_to_rows=32,
    fill_row_us=500,
)


def told_state(core: SchedulerCore, *, now_us: int) -> MeshState:
    """Return what a client reads at `now_us` of a scheduler with this core."""
    driver = Driver(core, clock=ManualClock())
    keeper = SessionKeeper(driver, settings=SchedulerSettings(edge="e:1"), now_ms=lambda: 0, on_state=lambda _: None)
    return mesh_state_of(mesh_message(core, keeper, now_us=now_us))


def engine_message(
    *,
    clock_us: int,
    busy_us: int = 0,
    idle_us: int = 0,
    bubbles_us: Mapping[BubbleCause, int] | None = None,
    sent_bytes: int = 0,
    received_bytes: int = 0,
    steps: Mapping[int, int] | None = None,
    num_free_blocks: int = 100,
) -> pb.EngineState:
    """Return an engine of 100 KV blocks; `steps` are numbers of steps of the body by rows."""
    bubbles = [
        pb.BubbleSum(cause=common_pb2.BubbleCause.ValueType(cause), total_us=total_us)
        for cause, total_us in (bubbles_us or {}).items()
    ]
    units = [
        pb.UnitSum(stage=common_pb2.STAGE_STEP, num_rows=num_rows, num_units=num_units, total_us=num_units)
        for num_rows, num_units in (steps or {}).items()
    ]
    return pb.EngineState(
        clock_us=clock_us,
        busy_us=busy_us,
        idle_us=idle_us,
        bubbles=bubbles,
        sent_bytes=sent_bytes,
        received_bytes=received_bytes,
        units=units,
        num_blocks=100,
        num_free_blocks=num_free_blocks,
    )


BEFORE_MESSAGE = pb.WatchMeshResponse(
    state=pb.SESSION_STATE_READY,
    session=7,
    plan=PLAN,
    clock_us=10_000_000,
    edge=engine_message(clock_us=500_000_000, busy_us=1_000_000, idle_us=2_000_000),
    cloud=engine_message(
        clock_us=900_000, busy_us=3_000_000, bubbles_us={BubbleCause.AWAIT_DECODE_HIDDEN: 50_000}, steps={8: 10}
    ),
    num_output_tokens=1_000,
    num_prefill_tokens=5_000,
    num_steps_done=10,
    num_chunks_done=4,
    outside_us=400_000,
    steps_us=700_000,
    ends=[pb.EndSum(end=pb.REQUEST_END_LENGTH, num_requests=20)],
)
"""A mesh that has served for a while."""
AFTER_MESSAGE = pb.WatchMeshResponse(
    state=pb.SESSION_STATE_READY,
    session=7,
    plan=PLAN,
    clock_us=12_000_000,
    edge=engine_message(
        clock_us=502_000_000,
        busy_us=1_500_000,
        idle_us=2_000_000,
        bubbles_us={BubbleCause.AWAIT_TASK: 20_000, BubbleCause.AWAIT_DECODE_HIDDEN: 1_480_000},
        sent_bytes=250_000_000,
        received_bytes=225_000_000,
        num_free_blocks=75,
    ),
    cloud=engine_message(
        clock_us=2_900_000,
        busy_us=4_800_000,
        bubbles_us={
            BubbleCause.GRACE: 30_000,
            BubbleCause.AWAIT_TASK: 20_000,
            BubbleCause.AWAIT_DECODE_HIDDEN: 170_000,
            BubbleCause.AWAIT_PREFILL_HIDDEN: 20_000,
            BubbleCause.LINK: 10_000,
        },
        steps={8: 60, 4: 50},
        num_free_blocks=40,
    ),
    num_waiting=3,
    num_running=12,
    num_releasing=1,
    num_chunks=2,
    num_decoding=9,
    num_preemptions=2,
    num_output_tokens=3_280,
    num_prefill_tokens=21_462,
    num_steps_done=110,
    num_chunks_done=26,
    rtt_us=11_180,
    outside_us=1_900_000,
    steps_us=2_640_000,
    queue_time=pb.Quantiles(num_times=1_200, p50_us=900, p90_us=12_400, p99_us=150_000),
    time_to_first_token=pb.Quantiles(num_times=1_190, p50_us=182_000, p90_us=401_000, p99_us=12_300_000),
    time_per_token=pb.Quantiles(num_times=840, p50_us=21_300, p90_us=24_900, p99_us=31_000),
    ends=[
        pb.EndSum(end=pb.REQUEST_END_LENGTH, num_requests=1_130),
        pb.EndSum(end=pb.REQUEST_END_CANCELLED, num_requests=2),
    ],
)
"""The same mesh two seconds later: the cloud was busy for 90 % and waited for a tenth of the round trips."""
DOWN_MESSAGE = pb.WatchMeshResponse(
    state=pb.SESSION_STATE_DOWN,
    session=7,
    reason="the prefill lane broke: connection reset",
    plan=PLAN,
    clock_us=13_000_000,
    num_preemptions=2,
    num_output_tokens=3_280,
    time_to_first_token=pb.Quantiles(num_times=1, p50_us=182_000, p90_us=182_000, p99_us=182_000),
    ends=[
        pb.EndSum(end=pb.REQUEST_END_LENGTH, num_requests=1_130),
        pb.EndSum(end=pb.REQUEST_END_LOST, num_requests=16),
    ],
)
"""The same mesh when its link broke, a second later."""
BEFORE, AFTER, DOWN = (mesh_state_of(message) for message in (BEFORE_MESSAGE, AFTER_MESSAGE, DOWN_MESSAGE))
