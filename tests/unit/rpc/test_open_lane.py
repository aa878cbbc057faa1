"""One lane, over a stream that is a pair of queues: order, drops, and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import structlog

from edgeweave.errors import EdgeweaveError, ProtocolError, SessionLostError, StaleSessionError
from edgeweave.interleave.nouns import DType, Lane
from edgeweave.rpc.open_lane import OpenLane
from edgeweave.wire.frame_codec import decode_up, encode_down, encode_up
from edgeweave.wire.frames import WARM_UP, Frame


class QueuedStream:
    """Gives what the test puts in, and keeps what the lane writes once `gate` is open."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()
        self.written: asyncio.Queue[Frame] = asyncio.Queue()
        self.gate = asyncio.Event()
        self.gate.set()

    async def read(self) -> Any:
        message = await self.incoming.get()
        if isinstance(message, BaseException):
            raise message
        return message

    async def write(self, message: Any, /) -> None:
        await self.gate.wait()
        self.written.put_nowait(decode_up(message, lane=Lane.DECODE))


class Carried:
    """A lane that is being carried, with what came on it and how it ended."""

    def __init__(self) -> None:
        self.stream = QueuedStream()
        self.end: asyncio.Future[EdgeweaveError] = asyncio.get_running_loop().create_future()
        self.lane = OpenLane(Lane.DECODE, stream=self.stream, encode=encode_down, decode=decode_up, end=self.end)
        self.frames: asyncio.Queue[Frame] = asyncio.Queue()

    def on_frame(self, frame: Frame) -> None:
        self.frames.put_nowait(frame)


@asynccontextmanager
async def carried() -> AsyncIterator[Carried]:
    """Carry a lane for the block; at its end the lane has ended and left no task behind."""
    made = Carried()
    carrying = asyncio.create_task(made.lane.carry(made.on_frame))
    yield made
    made.lane.end(SessionLostError("the test is over"))
    await carrying
    assert asyncio.all_tasks() == {asyncio.current_task()}


def _frame(unit: int) -> Frame:
    return Frame(unit, 0, 1, 1, DType.FLOAT32, payload=b"abcd")


async def test_frames_are_written_in_the_order_in_which_they_were_given() -> None:
    async with carried() as made:
        made.lane.send([_frame(1), _frame(2)])
        made.lane.send([_frame(3)])
        assert [(await made.stream.written.get()).unit for _ in range(3)] == [1, 2, 3]


async def test_a_drop_leaves_what_is_being_written_and_other_units() -> None:
    async with carried() as made:
        made.stream.gate.clear()
        made.lane.send([_frame(1), _frame(1), _frame(2), _frame(1)])
        await asyncio.sleep(0)  # the writer takes the first frame and waits for the transport
        await asyncio.sleep(0)
        made.lane.drop(1)
        made.stream.gate.set()
        assert [(await made.stream.written.get()).unit for _ in range(2)] == [1, 2]
        assert made.stream.written.empty()


async def test_hidden_states_are_counted_and_the_warm_up_is_not() -> None:
    async with carried() as made:
        made.lane.send([_frame(WARM_UP), _frame(1), _frame(2)])
        for unit in (WARM_UP, 1):
            made.stream.incoming.put_nowait(encode_up(_frame(unit)))
            await made.frames.get()
        while (await made.stream.written.get()).unit != 2:
            pass
        assert made.lane.received_bytes == 4
        assert made.lane.sent_bytes == 8


async def test_a_reader_never_waits_for_the_writer() -> None:
    """Frames come in while not one goes out."""
    async with carried() as made:
        made.stream.gate.clear()
        made.lane.send([_frame(9)])
        for unit in range(1, 50):
            made.stream.incoming.put_nowait(encode_up(_frame(unit)))
            assert (await made.frames.get()).unit == unit


async def test_the_first_reason_counts_and_frames_after_it_go_nowhere() -> None:
    async with carried() as made:
        made.lane.end(StaleSessionError("first"))
        made.lane.end(SessionLostError("second"))
        made.lane.send([_frame(1)])
        assert str(await made.end) == "first"
    assert made.stream.written.empty()


ENDINGS: list[tuple[Any, type[EdgeweaveError], str]] = [
    (grpc.aio.EOF, SessionLostError, "the decode lane was closed by its peer"),
    (
        grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "Socket closed"),
        SessionLostError,
        "the decode lane broke: Socket closed",
    ),
    (
        grpc.aio.AioRpcError(
            grpc.StatusCode.ABORTED,
            grpc.aio.Metadata(),
            grpc.aio.Metadata(("edgeweave-error", "ProtocolError")),
            "row of a sequence never created",
        ),
        ProtocolError,
        "row of a sequence never created",
    ),
    (b"\xff\xff", ProtocolError, "2 bytes on the decode lane are no CarryFramesRequest"),
    (asyncio.CancelledError(), SessionLostError, "the decode lane was closed"),
]


async def test_however_a_lane_ends_its_reason_names_it() -> None:
    for ending, kind, text in ENDINGS:
        async with carried() as made:
            made.stream.incoming.put_nowait(ending)
            reason = await made.end
            assert isinstance(reason, kind)
            assert text in str(reason)


async def test_a_bug_in_the_engine_ends_the_lane_and_is_logged_not_told() -> None:
    with structlog.testing.capture_logs() as logs:
        made = Carried()

        def fail(_frame: Frame) -> None:
            raise ZeroDivisionError("secret")

        made.stream.incoming.put_nowait(encode_up(_frame(1)))
        reason = await made.lane.carry(fail)
    assert type(reason) is EdgeweaveError
    assert "secret" not in str(reason)
    assert [log["event"] for log in logs] == ["lane_failed"]


async def test_a_carrier_that_is_cancelled_leaves_no_task() -> None:
    made = Carried()
    carrying = asyncio.create_task(made.lane.carry(made.on_frame))
    await asyncio.sleep(0)
    carrying.cancel()
    await asyncio.wait([carrying])
    assert carrying.cancelled()
    assert isinstance(made.end.result(), SessionLostError)
    assert asyncio.all_tasks() == {asyncio.current_task()}
