"""The prefill lane keeps to its pace, the decode lane has none, and each end learns from the other."""

import asyncio
import time
from collections.abc import Iterator

import structlog

from edgeweave.interleave.nouns import DType, Lane
from edgeweave.wire.frames import Frame, cut_rows
from fakes.lane_ends import ROW_BYTES, Cloud, lane_cloud, lane_edge

CHUNK_ROWS = 5120  # 10 MiB
SLOW_GBIT = "0.2"
EXPECTED_S = (CHUNK_ROWS * ROW_BYTES - (512 << 10)) * 8 / 0.2e9
"""What lies beyond the credit takes its time."""


def chunk(unit: int) -> Iterator[Frame]:
    shared = Frame(unit=unit, num_rows=CHUNK_ROWS, dtype=DType.FLOAT32)
    return cut_rows(bytes(CHUNK_ROWS * ROW_BYTES), unit=shared, row_bytes=ROW_BYTES, frame_bytes=256 << 10)


def step(unit: int) -> Frame:
    return Frame(unit, 0, 1, 1, DType.FLOAT32, payload=bytes(ROW_BYTES))


async def whole(frames: asyncio.Queue[Frame]) -> list[Frame]:
    """Return the frames of a unit when all of them are there."""
    taken = [await frames.get()]
    while taken[-1].row_stop < taken[-1].num_rows:
        taken.append(await frames.get())
    return taken


async def test_a_chunk_up_keeps_to_the_pace_and_a_step_beside_it_does_not_wait() -> None:
    async with lane_cloud() as cloud, lane_edge(cloud.target, prefill_pace=SLOW_GBIT) as edge:
        begin_s = time.monotonic()
        edge.lanes.prefill.send(chunk(1))
        edge.lanes.decode.send([step(1)])
        await cloud.lanes[Lane.DECODE].frames.get()
        assert edge.lanes.prefill.sent_bytes < CHUNK_ROWS * ROW_BYTES / 2
        await whole(cloud.lanes[Lane.PREFILL].frames)
        assert time.monotonic() - begin_s >= EXPECTED_S


async def test_a_chunk_down_keeps_to_the_pace_of_the_cloud() -> None:
    async with lane_cloud(prefill_pace=SLOW_GBIT) as cloud, lane_edge(cloud.target) as edge:
        begin_s = time.monotonic()
        cloud.lanes[Lane.PREFILL].lane.send(chunk(1))
        await whole(edge.frames[Lane.PREFILL])
        assert time.monotonic() - begin_s >= EXPECTED_S


async def test_frames_that_wait_for_their_turn_can_be_dropped() -> None:
    async with lane_cloud() as cloud, lane_edge(cloud.target, prefill_pace=SLOW_GBIT) as edge:
        edge.lanes.prefill.send(chunk(1))
        first = await cloud.lanes[Lane.PREFILL].frames.get()
        edge.lanes.prefill.drop(1)
        edge.lanes.prefill.send(chunk(2))
        while (frame := await cloud.lanes[Lane.PREFILL].frames.get()).unit == first.unit:
            assert frame.row_stop < CHUNK_ROWS
        assert (frame.unit, frame.row_start) == (2, 0)


async def test_each_end_tells_the_other_once_how_a_chunk_came(cloud: Cloud) -> None:
    """The warm-up chunk and every later one; a frame that carries it is like any other."""
    async with lane_edge(cloud.target, max_chunk_tokens=CHUNK_ROWS) as edge:
        edge.lanes.prefill.send(chunk(1))
        up = await whole(cloud.lanes[Lane.PREFILL].frames)
        assert [frame.arrived.unit for frame in up if frame.arrived] == [0], "the echo of the warm-up came down"
        cloud.lanes[Lane.PREFILL].lane.send(chunk(1))
        down = await whole(edge.frames[Lane.PREFILL])
        told = [frame.arrived for frame in down if frame.arrived]
        assert [arrived.unit for arrived in told] == [1]
        assert told[0].bytes_per_s > 0


async def test_a_lane_far_below_the_bandwidth_of_its_link_is_warned_of_with_where_to_look(cloud: Cloud) -> None:
    with structlog.testing.capture_logs() as logs:
        async with lane_edge(cloud.target, link_gbit=1e6):
            pass
        async with lane_edge(cloud.target, link_gbit=1e-3):
            pass
    [warning] = [log for log in logs if log["event"] == "lane_slow"]
    assert warning["log_level"] == "warning"
    assert all(name in warning["advice"] for name in ("tcp_wmem", "tcp_rmem", "tcp_slow_start_after_idle"))
