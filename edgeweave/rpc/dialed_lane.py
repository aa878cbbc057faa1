"""The edge's end of one lane, from dialing to closing.

Knows its connection, its opening and the echoes of unit 0. Does not know the other lane, units or plans.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from edgeweave.clock import Clock
from edgeweave.errors import EdgeweaveError, ProtocolError
from edgeweave.interleave.nouns import DType, Lane
from edgeweave.rpc.channels import connect, dial_lane
from edgeweave.rpc.cloud_service import CARRY_FRAMES
from edgeweave.rpc.open_lane import FrameStream, OpenLane
from edgeweave.rpc.options import DEFAULT_KEEPALIVE, Keepalive
from edgeweave.rpc.pacing import Pacing, rate_of
from edgeweave.settings.common import TlsSettings
from edgeweave.wire.frame_codec import decode_down, encode_up
from edgeweave.wire.frames import WARM_UP, Frame, LaneOpen, cut_rows

OnFrame = Callable[[Lane, Frame], None]
"""Takes a frame and the lane that it came on."""


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """What the lanes of one edge engine have in common.

    `row_bytes` is one token's hidden state, `max_chunk_tokens` the rows of the chunk that warms the prefill lane.
    Without `checked`, payloads carry no checksum. Connecting may take `connect_timeout_s` a lane, opening and
    warming both lanes `timeout_s` in all. `prefill_pace` is what `rate_of` takes. `link_gbit` is the bandwidth that
    the link should have, None where nobody says.
    """

    row_bytes: int
    dtype: DType
    max_chunk_tokens: int
    frame_bytes: int = 256 * 1024
    checked: bool = True
    keepalive: Keepalive = DEFAULT_KEEPALIVE
    tls: TlsSettings | None = None
    connect_timeout_s: float = 5.0
    timeout_s: float = 30.0
    prefill_pace: str = "auto"
    link_gbit: float | None = None

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the chunk that warms the prefill lane."""
        return self.max_chunk_tokens * self.row_bytes


class DialedLane:
    """One lane as the edge opens and warms it; `lane` is what the engine uses afterwards."""

    def __init__(
        self, lane: OpenLane, *, options: LaneOptions, on_frame: OnFrame, end: asyncio.Future[EdgeweaveError]
    ) -> None:
        self.lane = lane
        self._options = options
        self._on_frame = on_frame
        self._echoes: asyncio.Queue[Frame | EdgeweaveError] = asyncio.Queue()
        end.add_done_callback(lambda ended: self._echoes.put_nowait(ended.result()))

    async def carry(self) -> None:
        """Carry frames until the lane ends; echoes stay here, all others go to the engine."""
        await self.lane.carry(self._take)

    async def open(self, session: int) -> None:
        """Name the session and the lane to the cloud, and wait until it agrees; raises why it does not."""
        opened = LaneOpen(session, self.lane.lane)
        self.lane.send([Frame(unit=WARM_UP, open=opened)])
        echo = await self._next_echo()
        if echo.open != opened:
            raise ProtocolError(f"the cloud answered {echo.open} to {opened}; is it a cloud engine?")

    async def ping_us(self, clock: Clock) -> int:
        """Return how long one row takes there and back."""
        return await self._echo_us(clock, num_rows=1)

    async def chunk_us(self, clock: Clock) -> int:
        """Return how long the largest chunk takes there and back."""
        return await self._echo_us(clock, num_rows=self._options.max_chunk_tokens)

    async def _echo_us(self, clock: Clock, *, num_rows: int) -> int:
        options = self._options
        frames = cut_rows(
            bytes(num_rows * options.row_bytes),
            unit=Frame(unit=WARM_UP, num_rows=num_rows, dtype=options.dtype),
            row_bytes=options.row_bytes,
            frame_bytes=options.frame_bytes,
        )
        begin_us = clock.now_us()
        self.lane.send(frames)
        while (await self._next_echo()).row_stop < num_rows:
            pass
        return clock.now_us() - begin_us

    async def _next_echo(self) -> Frame:
        echo = await self._echoes.get()
        if isinstance(echo, EdgeweaveError):
            raise echo
        return echo

    def _take(self, frame: Frame) -> None:
        if frame.unit == WARM_UP:
            self._echoes.put_nowait(frame)
        else:
            self._on_frame(self.lane.lane, frame)


@asynccontextmanager
async def dialed_lane(
    lane: Lane,
    *,
    target: str,
    session: int,
    options: LaneOptions,
    on_frame: OnFrame,
    end: asyncio.Future[EdgeweaveError],
    clock: Clock,
) -> AsyncIterator[DialedLane]:
    """Dial `target` for one lane of `session`, on a connection of its own, and close it at the end of the block."""
    async with dial_lane(target, keepalive=options.keepalive, tls=options.tls) as channel:
        await connect(channel, target=target, timeout_s=options.connect_timeout_s)
        stream: FrameStream = channel.stream_stream(CARRY_FRAMES)()
        encode = partial(encode_up, checked=options.checked)
        pacing = (
            Pacing(rate_of(options.prefill_pace, link_gbit=options.link_gbit), clock=clock)
            if lane is Lane.PREFILL
            else None
        )
        opened = OpenLane(lane, stream=stream, encode=encode, decode=decode_down, end=end, pacing=pacing)
        dialed = DialedLane(opened, options=options, on_frame=on_frame, end=end)
        carrying = asyncio.create_task(dialed.carry())
        try:
            await dialed.open(session)
            yield dialed
        finally:
            carrying.cancel()
            await asyncio.wait([carrying])
