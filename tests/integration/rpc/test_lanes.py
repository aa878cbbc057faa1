"""Lanes carry units intact and apart, and their end is known at both sides."""

import asyncio
from collections.abc import Iterator

import pytest

from edgeweave.errors import ProtocolError, SessionLostError, StaleSessionError, UnavailableError
from edgeweave.interleave.nouns import DType, ErrorCode, Lane, Row
from edgeweave.rpc.options import Keepalive
from edgeweave.wire.assembly import Assembly
from edgeweave.wire.frames import Frame, UnitFailure, cut_rows
from fakes.lane_ends import ROW_BYTES, SESSION, Cloud, lane_cloud, lane_edge
from fakes.tcp_proxy import tcp_proxy

CHUNK_ROWS = 10_240  # 20 MiB
FRAME_BYTES = 256 * 1024


def _cut(payload: bytes, *, unit: int) -> Iterator[Frame]:
    num_rows = len(payload) // ROW_BYTES
    shared = Frame(unit=unit, num_rows=num_rows, dtype=DType.FLOAT32, sent_us=5)
    return cut_rows(payload, unit=shared, row_bytes=ROW_BYTES, frame_bytes=FRAME_BYTES)


async def _received(frames: asyncio.Queue[Frame], *, num_rows: int) -> bytes:
    assembly = Assembly(1, num_rows=num_rows, row_bytes=ROW_BYTES, dtype=DType.FLOAT32)
    while not assembly.is_complete:
        assembly.add(await frames.get())
    return bytes(assembly.payload)


def _step(step: int) -> Frame:
    rows = (Row(3, 9, 10),)
    return Frame(step, 0, 1, 1, DType.FLOAT32, payload=bytes(ROW_BYTES), rows=rows)


async def test_a_chunk_of_20_mb_comes_intact_both_ways(cloud: Cloud) -> None:
    async with lane_edge(cloud.target) as edge:
        payload = bytes(range(256)) * (CHUNK_ROWS * ROW_BYTES // 256)
        edge.lanes.prefill.send(_cut(payload, unit=1))
        up = cloud.lanes[Lane.PREFILL]
        assert await _received(up.frames, num_rows=CHUNK_ROWS) == payload
        up.lane.send(_cut(payload, unit=1))
        assert await _received(edge.frames[Lane.PREFILL], num_rows=CHUNK_ROWS) == payload
        for lane in (edge.lanes.prefill, up.lane):
            assert (lane.sent_bytes, lane.received_bytes) == (len(payload), len(payload))


async def test_a_frame_may_be_larger_than_the_usual_limit_of_a_message(cloud: Cloud) -> None:
    """A step of many wide rows is one frame; gRPC refuses more than 4 MiB unless told otherwise."""
    payload = bytes(8 << 20)
    num_rows = len(payload) // ROW_BYTES
    frame = Frame(1, 0, num_rows, num_rows, DType.FLOAT32, payload=payload)
    async with lane_edge(cloud.target) as edge:
        edge.lanes.prefill.send([frame])
        assert await cloud.lanes[Lane.PREFILL].frames.get() == frame


async def test_the_warm_up_is_measured_and_stays_between_the_lanes(cloud: Cloud) -> None:
    """Neither engine sees unit 0, and no counter of hidden states counts it."""
    async with lane_edge(cloud.target) as edge:
        assert edge.lanes.ready.rtt_us > 0
        assert edge.lanes.ready.prefill_bytes_per_s > 0
        for lane in Lane:
            assert cloud.lanes[lane].frames.empty()
            assert edge.frames[lane].empty()
        assert edge.lanes.prefill.sent_bytes == edge.lanes.prefill.received_bytes == 0


async def test_a_step_names_its_rows_and_a_failure_comes_back_typed(cloud: Cloud) -> None:
    async with lane_edge(cloud.target) as edge:
        edge.lanes.decode.send([_step(1)])
        assert await cloud.lanes[Lane.DECODE].frames.get() == _step(1)
        failed = Frame(unit=1, failure=UnitFailure((3,), ErrorCode.OUT_OF_MEMORY))
        cloud.lanes[Lane.DECODE].lane.send([failed])
        assert await edge.frames[Lane.DECODE].get() == failed


async def test_a_step_is_not_stuck_behind_a_chunk(cloud: Cloud) -> None:
    """With a hundred chunks queued on the prefill lane, a step is there and back before they are through."""
    async with lane_edge(cloud.target) as edge:
        edge.lanes.prefill.send(frame for unit in range(1, 101) for frame in _cut(bytes(2 << 20), unit=unit))
        edge.lanes.decode.send([_step(1)])
        await cloud.lanes[Lane.DECODE].frames.get()
        cloud.lanes[Lane.DECODE].lane.send([_step(1)])
        await edge.frames[Lane.DECODE].get()
        assert edge.lanes.prefill.sent_bytes < 100 << 20


async def test_each_lane_has_a_tcp_connection_of_its_own(cloud: Cloud) -> None:
    async with tcp_proxy(cloud.server.port) as (proxy, target), lane_edge(target):
        assert proxy.num_connections == 2


@pytest.mark.parametrize("is_warm", [False, True])
async def test_a_chunk_waits_for_no_window(cloud: Cloud, *, is_warm: bool) -> None:
    """Nothing comes back from the cloud while 20 MB go up: so they need not even one round trip on the way."""
    async with (
        tcp_proxy(cloud.server.port) as (proxy, target),
        lane_edge(target, max_chunk_tokens=CHUNK_ROWS if is_warm else 1) as edge,
    ):
        proxy.hold_downward()
        edge.lanes.prefill.send(_cut(bytes(CHUNK_ROWS * ROW_BYTES), unit=1))
        await _received(cloud.lanes[Lane.PREFILL].frames, num_rows=CHUNK_ROWS)
        proxy.let_through()


async def test_a_chunk_back_waits_for_no_window(cloud: Cloud) -> None:
    """The same on the way down."""
    async with tcp_proxy(cloud.server.port) as (proxy, target), lane_edge(target) as edge:
        proxy.hold_upward()
        cloud.lanes[Lane.PREFILL].lane.send(_cut(bytes(CHUNK_ROWS * ROW_BYTES), unit=1))
        await _received(edge.frames[Lane.PREFILL], num_rows=CHUNK_ROWS)
        proxy.let_through()


async def test_unsent_frames_of_a_dropped_chunk_are_never_sent(cloud: Cloud) -> None:
    async with lane_edge(cloud.target) as edge:
        for unit in (1, 2):
            edge.lanes.prefill.send(_cut(bytes(4 * FRAME_BYTES), unit=unit))
        edge.lanes.prefill.drop(1)
        assert (await cloud.lanes[Lane.PREFILL].frames.get()).unit == 2


async def test_an_unknown_session_is_refused_with_both_numbers(cloud: Cloud) -> None:
    with pytest.raises(StaleSessionError, match=f"session 6 is not served here, {SESSION} is"):
        async with lane_edge(cloud.target, session=6):
            pytest.fail("the lanes opened")
    assert not cloud.lanes


async def test_a_cloud_that_is_not_there_is_named(cloud: Cloud) -> None:
    await cloud.server.stop(grace_s=0)
    with pytest.raises(UnavailableError, match=f"nothing answers at {cloud.target}"):
        async with lane_edge(cloud.target, connect_timeout_s=0.3):
            pytest.fail("the lanes opened")


async def test_a_cut_connection_is_known_at_both_sides_once(cloud: Cloud) -> None:
    async with tcp_proxy(cloud.server.port) as (proxy, target), lane_edge(target) as edge:
        proxy.cut()
        assert isinstance(await edge.lanes.ended(), SessionLostError)
        await _assert_cloud_hears_once(cloud)


QUICK = Keepalive(interval_s=0.2, timeout_s=0.2)
SLOW = Keepalive(interval_s=600, timeout_s=600)


async def test_a_silent_link_is_noticed_by_the_edge() -> None:
    """No byte comes through and no connection breaks: the edge's own pings tell it."""
    async with (
        lane_cloud(keepalive=SLOW) as cloud,
        tcp_proxy(cloud.server.port) as (proxy, target),
        lane_edge(target, keepalive=QUICK) as edge,
    ):
        proxy.hold_upward()
        proxy.hold_downward()
        assert isinstance(await edge.lanes.ended(), SessionLostError)


async def test_a_silent_link_is_noticed_by_the_cloud() -> None:
    """The cloud's own pings tell it that the other end is gone, and with it goes the memory of the session."""
    async with (
        lane_cloud(keepalive=QUICK) as cloud,
        tcp_proxy(cloud.server.port) as (proxy, target),
        lane_edge(target, keepalive=SLOW),
    ):
        proxy.hold_upward()
        proxy.hold_downward()
        for lane in cloud.lanes.values():
            assert isinstance(await lane.ends.get(), SessionLostError)


async def test_a_quiet_session_is_no_silent_link() -> None:
    """Pings without traffic are allowed; by default a server takes three for an attack and hangs up.

    That holds where the cloud itself pings less often, too. The edge sends one a second, however often it was told to:
    hence the long wait.
    """
    often = Keepalive(interval_s=0.2, timeout_s=5)
    async with lane_cloud(keepalive=SLOW) as cloud, lane_edge(cloud.target, keepalive=often) as edge:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(edge.lanes.ended(), 4.5)


async def test_when_one_lane_ends_the_other_ends_with_it(cloud: Cloud) -> None:
    async with lane_edge(cloud.target) as edge:
        cloud.lanes[Lane.PREFILL].lane.end(StaleSessionError("session 7 ended, 8 began"))
        reason = await edge.lanes.ended()
        assert isinstance(reason, StaleSessionError)
        assert str(reason) == "session 7 ended, 8 began"
        await _assert_cloud_hears_once(cloud)


async def test_what_a_session_cannot_take_ends_the_lane_with_its_reason(cloud: Cloud) -> None:
    async with lane_edge(cloud.target) as edge:

        def refuse(_frame: Frame) -> None:
            raise ProtocolError("row of sequence 3, which was never created")

        cloud.lanes[Lane.DECODE].on_frame = refuse  # type: ignore[assignment,method-assign]  # one sink that refuses
        edge.lanes.decode.send([_step(1)])
        reason = await edge.lanes.ended()
        assert isinstance(reason, ProtocolError)
        assert "never created" in str(reason)


async def test_closing_at_the_edge_is_heard_in_the_cloud(cloud: Cloud) -> None:
    async with lane_edge(cloud.target):
        pass
    await _assert_cloud_hears_once(cloud)


async def _assert_cloud_hears_once(cloud: Cloud) -> None:
    for lane in cloud.lanes.values():
        await lane.ends.get()
    await cloud.server.stop(grace_s=0)
    for lane in cloud.lanes.values():
        assert lane.ends.empty()
