"""One open lane, as the engine at either end of it sees it.

Knows how frames get onto the stream and off it: a writer that keeps them in order and lets unsent ones be dropped, and
a reader that never waits for compute. Does not know who opened the lane (`lanes`, `lane_servicer`), nor what a unit is.

The writer hands gRPC one frame at a time and waits until the transport took it, so at most one frame lies in gRPC;
what the kernel holds is bounded by its send buffer. All methods belong to the event loop: an engine's thread calls
them through `call_soon_threadsafe`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

import grpc
import structlog

from edgeweave.errors import EdgeweaveError, LaneClosedError, SessionLostError, UnavailableError
from edgeweave.interleave.nouns import Lane
from edgeweave.rpc.pacing import Pacing
from edgeweave.rpc.status import SHADOWED, error_of
from edgeweave.wire.frames import WARM_UP, Frame

_log = structlog.get_logger(__name__)


class FrameStream(Protocol):
    """Either end of a gRPC stream of raw messages."""

    async def read(self) -> Any:
        """Return the next message, or `grpc.aio.EOF`."""
        ...

    async def write(self, message: Any, /) -> None:
        """Return when the transport took `message`."""
        ...


class Decode(Protocol):
    """Makes a frame of a message; ProtocolError if it cannot."""

    def __call__(self, message: bytes, *, lane: Lane) -> Frame:
        """Return the frame in `message`."""
        ...


class OpenLane:
    """One lane between an edge and a cloud engine, while it is open.

    `sent_bytes` and `received_bytes` count hidden states; the warm-up is not among them. Lanes that share `end` end
    together: what sets it first is the reason for all of them.
    """

    def __init__(
        self,
        lane: Lane,
        *,
        stream: FrameStream,
        encode: Callable[[Frame], bytes],
        decode: Decode,
        end: asyncio.Future[EdgeweaveError],
        pacing: Pacing | None = None,
    ) -> None:
        self.lane = lane
        self.sent_bytes = 0
        self.received_bytes = 0
        self._stream = stream
        self._encode = encode
        self._decode = decode
        self._pacing = pacing
        self._unsent: deque[Frame] = deque()
        self._has_unsent = asyncio.Event()
        self._end = end

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the {self.lane.name.lower()} lane"

    def send(self, frames: Iterable[Frame]) -> None:
        """Send `frames` after those that were given before. On a lane that has ended they go nowhere."""
        if not self._end.done():
            self._unsent.extend(frames)
            self._has_unsent.set()

    def drop(self, unit: int) -> None:
        """Forget the frames of `unit` that are not sent yet."""
        self._unsent = deque(frame for frame in self._unsent if frame.unit != unit)

    def end(self, reason: EdgeweaveError) -> None:
        """End the lane; the first reason counts."""
        if not self._end.done():
            self._end.set_result(reason)

    async def carry(self, on_frame: Callable[[Frame], None]) -> EdgeweaveError:
        """Carry frames both ways until the lane ends, and return why.

        `on_frame` gets each frame as it comes. It only puts it somewhere: what it raises, ends the lane.
        """
        reading = asyncio.create_task(self._read(on_frame))
        writing = asyncio.create_task(self._write())
        for way in (reading, writing):
            way.add_done_callback(self._way_ended)
        try:
            return await asyncio.shield(self._end)
        finally:
            self.end(self._lost("was closed"))
            reading.cancel()
            writing.cancel()
            await asyncio.wait((reading, writing))
            self._unsent.clear()

    async def _read(self, on_frame: Callable[[Frame], None]) -> None:
        while (message := await self._stream.read()) is not grpc.aio.EOF:
            frame = self._decode(message, lane=self.lane)
            self.received_bytes += _hidden_bytes(frame)
            if self._pacing is not None:
                self._pacing.arrived(frame)
            on_frame(frame)
        raise LaneClosedError(f"{self.name} was closed by its peer")

    async def _write(self) -> None:
        # These two mean that the call is over, and do not say why: the reader learns that.
        with suppress(asyncio.InvalidStateError, grpc.aio.BaseError):
            while True:
                await self._has_unsent.wait()
                await self._write_unsent()
                self._has_unsent.clear()

    async def _write_unsent(self) -> None:
        while self._unsent:
            # A frame stays among the unsent ones until it may leave, so that it can still be dropped.
            if self._pacing is not None and (wait_us := self._pacing.wait_us(self._unsent[0])):
                await asyncio.sleep(wait_us / 1e6)
                continue
            frame = self._unsent.popleft()
            leaving = frame if self._pacing is None else self._pacing.leaving(frame)
            await self._stream.write(self._encode(leaving))
            self.sent_bytes += _hidden_bytes(frame)
        if self._pacing is not None:
            self._pacing.ran_dry()

    def _way_ended(self, way: asyncio.Task[None]) -> None:
        if way.cancelled():
            self.end(self._lost("was closed"))
        elif error := way.exception():
            self.end(self._reason(error))

    def _reason(self, error: BaseException) -> EdgeweaveError:
        if isinstance(error, EdgeweaveError):
            return error
        if isinstance(error, grpc.aio.AioRpcError):
            if error.details() == SHADOWED:
                return LaneClosedError(f"{self.name} ended while a frame was being sent")
            told = error_of(error)
            is_told_by_peer = type(told) not in (EdgeweaveError, UnavailableError)
            return told if is_told_by_peer else self._lost(f"broke: {told}")
        _log.error("lane_failed", lane=self.lane.name.lower(), exc_info=error)
        return EdgeweaveError(f"{self.name} failed, see the log of the service")

    def _lost(self, complaint: str) -> SessionLostError:
        return SessionLostError(f"{self.name} {complaint}")


def _hidden_bytes(frame: Frame) -> int:
    return 0 if frame.unit == WARM_UP else len(frame.payload)
