"""The cloud's end of the lanes.

Knows how a lane is opened, refused, warmed and ended. Does not know what the engine does with a frame: a `LaneSink`
per lane takes it.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import structlog

from edgeweave.clock import Clock
from edgeweave.errors import EdgeweaveError, LaneClosedError, ProtocolError
from edgeweave.interleave.nouns import Lane
from edgeweave.rpc.open_lane import FrameStream, OpenLane
from edgeweave.rpc.pacing import Pacing, rate_of
from edgeweave.rpc.status import Context, telling_errors
from edgeweave.wire.frame_codec import decode_up, encode_down
from edgeweave.wire.frames import WARM_UP, Frame, LaneOpen

_log = structlog.get_logger(__name__)


class LaneSink(Protocol):
    """Where a session takes what comes on one of its lanes."""

    def on_frame(self, frame: Frame) -> None:
        """Put `frame` into staging; an EdgeweaveError from here ends the lane."""
        ...

    def on_end(self, reason: EdgeweaveError) -> None:
        """Hear, once, that the lane has ended, and why."""
        ...


Accept = Callable[[int, OpenLane], LaneSink]
"""Takes a session number and a lane, and returns where its frames go.

Raises StaleSessionError, which names both numbers, if that session is not the one that is served.
"""


class LaneServicer:
    """Serves `CarryFrames`. Frames of unit 0 are echoed here and never reach the engine."""

    def __init__(
        self,
        accept: Accept,
        *,
        clock: Clock,
        prefill_pace: str = "auto",
        link_gbit: float | None = None,
        checked: bool = True,
    ) -> None:
        self._accept = accept
        self._clock = clock
        self._prefill_pace = prefill_pace
        self._link_gbit = link_gbit
        self._encode = partial(encode_down, checked=checked)

    async def carry_frames(self, _requests: Any, context: Context) -> None:
        """Carry the frames of one lane until either side ends it; the edge is told why."""
        async with telling_errors(context):
            opened = await _read_open(context)
            end: asyncio.Future[EdgeweaveError] = asyncio.get_running_loop().create_future()
            lane = OpenLane(
                opened.lane,
                stream=context,
                encode=self._encode,
                decode=decode_up,
                end=end,
                pacing=self._pacing(opened.lane),
            )
            sink = self._accept(opened.session, lane)
            _log.info("lane_opened", session=opened.session, lane=opened.lane.name.lower())
            lane.send([Frame(unit=WARM_UP, open=opened)])
            raise await _carry(lane, opened, sink)

    def _pacing(self, lane: Lane) -> Pacing | None:
        if lane is not Lane.PREFILL:
            return None
        return Pacing(rate_of(self._prefill_pace, link_gbit=self._link_gbit), clock=self._clock)


async def _carry(lane: OpenLane, opened: LaneOpen, sink: LaneSink) -> EdgeweaveError:
    """Carry until the lane ends; the sink hears of it however that comes about."""
    reason: EdgeweaveError = LaneClosedError(f"{lane.name} was closed by the edge")
    try:
        reason = await lane.carry(partial(_take, lane=lane, sink=sink))
    finally:
        _log.info("lane_ended", session=opened.session, lane=opened.lane.name.lower(), reason=str(reason))
        sink.on_end(reason)
    return reason


def _take(frame: Frame, *, lane: OpenLane, sink: LaneSink) -> None:
    if frame.unit == WARM_UP:
        lane.send([frame])
    else:
        sink.on_frame(frame)


async def _read_open(stream: FrameStream) -> LaneOpen:
    message = await stream.read()
    # Which lane it is stands in this very message; until it is read, any name serves for an error.
    frame = decode_up(message, lane=Lane.PREFILL) if isinstance(message, bytes) else None
    if frame is None or frame.open is None:
        raise ProtocolError("the first message of a lane must name its session and lane; is the peer an edge engine?")
    return frame.open
