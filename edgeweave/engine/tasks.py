"""The task stream of an engine: tasks in, reports out, for one session.

Knows how the stream and its session end together. Does not know which tasks there are.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

import grpc
import structlog

from edgeweave.engine.port import Report
from edgeweave.engine.session import EngineSession
from edgeweave.errors import EdgeweaveError, ProtocolError, SessionLostError
from edgeweave.rpc.status import Context, when_over

RequestT = TypeVar("RequestT")
_log = structlog.get_logger(__name__)


async def first_task(requests: AsyncIterator[RequestT]) -> RequestT:
    """Return the first message of a task stream; ProtocolError if it ends before."""
    async for request in requests:
        return request
    raise ProtocolError("the task stream ended before its first task, which must be attach")


async def carry_tasks(
    session: EngineSession, *, tasks: AsyncIterator[Any], context: Context
) -> AsyncGenerator[Report, None]:
    """Post tasks and yield reports until the session ends; then raise why it ended. However the rpc ends, it ends."""
    when_over(context, lambda: session.end(_closed(session)))
    reading = asyncio.create_task(_read(session, tasks))
    session.ended.add_done_callback(lambda _: reading.cancel())
    async for report in session.reports():
        yield report


async def _read(session: EngineSession, tasks: AsyncIterator[Any]) -> None:
    """Post tasks until the stream ends or cannot be read."""
    reason: EdgeweaveError = _closed(session)
    try:
        async for task in tasks:
            session.post(task)
    except EdgeweaveError as error:
        reason = error
    except grpc.aio.BaseError as error:
        reason = SessionLostError(f"the task stream broke: {error}")
    except Exception as error:  # noqa: BLE001 - the border of the session: whatever it is, only it ends
        _log.error("task_failed", session=session.number, exc_info=error)
        reason = ProtocolError("a task could not be taken, see the log of the engine")
    session.end(reason)


def _closed(session: EngineSession) -> SessionLostError:
    return SessionLostError(f"the task stream to the {session.engine} engine ended")
