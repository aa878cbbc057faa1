"""The scheduler's end of an engine's task stream.

Knows how tasks get out in order without anyone waiting, how reports come in, and how the stream ends. Does not know
what the tasks mean.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import grpc
import structlog

from edgeweave.errors import EdgeweaveError, ProtocolError, SessionLostError, UnavailableError
from edgeweave.interleave.accounts import Side
from edgeweave.rpc.status import SHADOWED, error_of

# What a call raises once it is over; only its status says why.
_BROKEN = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
_log = structlog.get_logger(__name__)


class ReasonLostError(SessionLostError):
    """A task stream ended, and gRPC does not tell why."""


class TaskStream:
    """One task stream. `encode` and `decode` turn nouns into its messages and back."""

    def __init__(
        self, side: Side, *, target: str, call: Any, encode: Callable[[Any], Any], decode: Callable[[Any], Any]
    ) -> None:
        self.side = side
        self.target = target
        self._call = call
        self._encode = encode
        self._decode = decode
        self._unsent: asyncio.Queue[Any] = asyncio.Queue()
        self._ended: asyncio.Future[EdgeweaveError] = asyncio.get_running_loop().create_future()

    def send(self, task: Any) -> None:
        """Send a task after those before; returns at once."""
        self._unsent.put_nowait(task)

    def end(self, reason: EdgeweaveError) -> None:
        """End the stream; the first reason counts."""
        if not self._ended.done():
            self._ended.set_result(reason)

    async def ask(self, task: Any, *, timeout_s: float) -> Any:
        """Send a task and return the next report. Only before `carry`.

        Raises:
            EdgeweaveError: what the engine answered instead, or UnavailableError if it said nothing in time.
        """
        return await self._in_time(self._write_and_read(task), timeout_s=timeout_s)

    async def next_report(self, *, timeout_s: float) -> Any:
        """Return the next report. Only before `carry`; raises as `ask` does."""
        return await self._in_time(self._read(), timeout_s=timeout_s)

    async def carry(self, on_report: Callable[[Any], None]) -> EdgeweaveError:
        """Carry tasks and reports until the stream ends, and return why."""
        ways = [asyncio.create_task(self._write_all()), asyncio.create_task(self._read_all(on_report))]
        try:
            return await asyncio.shield(self._ended)
        finally:
            self.end(SessionLostError(f"{self._name} was closed"))
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._call.cancel()

    @property
    def _name(self) -> str:
        return f"the task stream to the {self.side.value} engine at {self.target}"

    def _silence(self, timeout_s: float) -> EdgeweaveError:
        return UnavailableError(f"{self._name} did not answer within {timeout_s:g} s; is the engine running?")

    async def _in_time(self, report: Coroutine[Any, Any, Any], *, timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                return await report
        except TimeoutError:
            raise self._silence(timeout_s) from None
        except _BROKEN:
            raise await self._failure() from None

    async def _write_and_read(self, task: Any) -> Any:
        await self._call.write(self._encode(task))
        return await self._read()

    async def _read(self) -> Any:
        message = await self._call.read()
        if message is grpc.aio.EOF:
            raise await self._failure()
        return self._decode(message)

    async def _read_all(self, on_report: Callable[[Any], None]) -> None:
        try:
            while True:
                on_report(await self._read())
        except _BROKEN:
            self.end(await self._failure())
        except EdgeweaveError as error:
            self.end(error)
        except Exception as error:  # noqa: BLE001 - the border of the session: whatever it is, only it ends
            _log.error("report_failed", side=self.side.value, exc_info=error)
            self.end(ProtocolError(f"a report on {self._name} could not be taken, see the log of the scheduler"))

    async def _write_all(self) -> None:
        try:
            while True:
                await self._call.write(self._encode(await self._unsent.get()))
        except _BROKEN:
            self.end(await self._failure())
        except Exception as error:  # noqa: BLE001 - the border of the session: whatever it is, only it ends
            _log.error("task_failed", side=self.side.value, exc_info=error)
            self.end(ProtocolError(f"a task for {self._name} could not be sent, see the log of the scheduler"))

    async def _failure(self) -> EdgeweaveError:
        """Return why the call ended, by its status."""
        code, details = await self._call.code(), await self._call.details()
        if details == SHADOWED:
            return ReasonLostError(f"{self._name} ended while a task was being sent")
        if code is grpc.StatusCode.OK:
            return SessionLostError(f"{self._name} was closed by the engine")
        trailing = await self._call.trailing_metadata()
        told = error_of(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing or grpc.aio.Metadata(), details))
        if isinstance(told, SessionLostError) or type(told) not in (UnavailableError, EdgeweaveError):
            return told
        return UnavailableError(f"{self._name} ended: {told}")
