"""The task stream of an engine and its session end together, whatever ends them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from edgeweave.clock import ManualClock
from edgeweave.engine.arrival import Staging
from edgeweave.engine.session import EngineSession
from edgeweave.engine.slot import SessionSlot
from edgeweave.engine.tasks import carry_tasks
from edgeweave.engine.worker import Worker
from edgeweave.errors import EdgeweaveError, ProtocolError, SessionLostError
from edgeweave.interleave.nouns import DType, Lane, Released
from edgeweave.rpc.open_lane import OpenLane
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
    staging = Staging(row_bytes=4, dtype=DType.FLOAT32, largest_bytes=64)
    return EngineSession(number, worker=Worker(clock=ManualClock()), staging=staging, row_bytes=4, frame_bytes=64)


async def silence() -> AsyncIterator[object]:
    """No task, for ever."""
    await asyncio.Event().wait()
    yield


async def unreadable() -> AsyncIterator[object]:
    """A task that nobody foresaw."""
    raise KeyError("kind")
    yield


async def test_a_task_that_cannot_be_taken_ends_the_session() -> None:
    """A stream that nobody reads any more would leave it hanging."""
    slot = SessionSlot()
    session = await slot.attach(1, site=b"", create=lambda: session_of(1))
    with pytest.raises(ProtocolError, match="a task could not be taken"):
        async for _ in carry_tasks(session, slot=slot, tasks=unreadable()):
            pass
    await slot.idle()


async def test_a_scheduler_that_leaves_after_the_first_report_leaves_the_place() -> None:
    """The answer to attach is a report like others: from then on the session ends with its stream."""
    slot = SessionSlot()
    session = await slot.attach(1, site=b"", create=lambda: session_of(1))
    session.tell(FIRST)
    reports = carry_tasks(session, slot=slot, tasks=silence())
    assert await anext(reports) is FIRST
    await reports.aclose()
    await slot.idle()
    assert isinstance(session.ended.result(), SessionLostError)


async def test_a_lane_of_a_session_that_has_ended_is_refused() -> None:
    """Nobody would end it."""
    session = session_of(1)
    session.end(SessionLostError("the link broke"))
    end: asyncio.Future[EdgeweaveError] = asyncio.get_running_loop().create_future()
    lane = OpenLane(Lane.DECODE, stream=SilentStream(), encode=encode_down, decode=decode_up, end=end)
    with pytest.raises(SessionLostError, match="the link broke"):
        session.add_lane(lane)
