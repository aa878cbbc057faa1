"""The task stream of an engine and its session end together, whatever ends them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from edgeweave.clock import ManualClock
from edgeweave.engine.arrival import Staging
from edgeweave.engine.session import EngineSession
from edgeweave.engine.slot import SessionSlot
from edgeweave.engine.tasks import carry_tasks
from edgeweave.engine.worker import Worker
from edgeweave.errors import EdgeweaveError, ProtocolError, SessionLostError, StaleSessionError
from edgeweave.interleave.nouns import DType, Lane, Released
from edgeweave.rpc.open_lane import OpenLane
from edgeweave.rpc.status import Context
from edgeweave.wire.frame_codec import decode_up, encode_down

FIRST = Released((1,))


class SilentStream:
    """A lane's stream on which nothing comes or goes."""

    async def read(self) -> Any:
        return await asyncio.get_running_loop().create_future()

    async def write(self, _message: Any, /) -> None:
        await asyncio.get_running_loop().create_future()


def session_of(number: int) -> EngineSession:
    """A session that has computed nothing yet."""
    staging = Staging(row_bytes=4, dtype=DType.FLOAT32, largest_bytes=64, clock=ManualClock())
    return EngineSession(
        number, engine="edge", worker=Worker(clock=ManualClock()), staging=staging, row_bytes=4, frame_bytes=64
    )


async def silence() -> AsyncIterator[object]:
    """No task, for ever."""
    await asyncio.Event().wait()
    yield None


async def unreadable() -> AsyncIterator[object]:
    """A task that nobody foresaw."""
    task: dict[str, object] = {}
    yield task["kind"]


class OpenRpc:
    """The context of an rpc that ends when it is told to."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[Any], None]] = []

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        """Do what gRPC does when the rpc is over, however it ended."""
        for callback in self._callbacks:
            callback(self)


async def test_a_task_that_cannot_be_taken_ends_the_session() -> None:
    """A stream that nobody reads any more would leave it hanging."""
    slot = SessionSlot()
    session = await slot.attach(1, site=b"", create=lambda: session_of(1))
    with pytest.raises(ProtocolError, match="a task could not be taken"):
        async for _ in carry_tasks(session, tasks=unreadable(), context=cast("Context", OpenRpc())):
            pass
    await slot.idle()


async def test_an_rpc_that_ends_while_a_report_is_sent_frees_the_place() -> None:
    """The generator is not closed then: it stays where it is, and the session ends all the same."""
    slot, rpc = SessionSlot(), OpenRpc()
    session = await slot.attach(1, site=b"", create=lambda: session_of(1))
    session.tell(FIRST)
    reports = carry_tasks(session, tasks=silence(), context=cast("Context", rpc))
    assert await anext(reports) is FIRST
    rpc.end()
    await slot.idle()
    assert isinstance(session.ended.result(), SessionLostError)
    await reports.aclose()


async def test_a_session_that_follows_waits_until_the_one_before_is_free() -> None:
    """A higher number evicts the lower one, and has the place when everything of that is free."""
    slot = SessionSlot()
    before = await slot.attach(1, site=b"", create=lambda: session_of(1))
    after = await slot.attach(2, site=b"", create=lambda: session_of(2))
    assert "followed by session 2" in str(before.ended.result())
    assert slot.current(2) is after
    with pytest.raises(StaleSessionError, match="session 1 is not served here, the present one is 2"):
        slot.current(1)


async def test_a_lane_of_a_session_that_has_ended_is_refused() -> None:
    """Nobody would end it."""
    session = session_of(1)
    session.end(SessionLostError("the link broke"))
    end: asyncio.Future[EdgeweaveError] = asyncio.get_running_loop().create_future()
    lane = OpenLane(Lane.DECODE, stream=SilentStream(), encode=encode_down, decode=decode_up, end=end)
    with pytest.raises(SessionLostError, match="the link broke"):
        session.add_lane(lane)
