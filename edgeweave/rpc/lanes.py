"""The edge's end of the lanes: both opened, warmed and measured, and ended together.

Knows connections and the warm-up. Does not know units or plans.

The warm-up sends one full chunk there and back, twice: the first opens windows and buffers all the way, the second is
timed. What it cannot do is keep TCP itself fast: by default Linux forgets the rate of a connection that was silent
for a retransmission timeout (`net.ipv4.tcp_slow_start_after_idle = 1`), and a small ping now and then does not help,
since a window that is not filled decays as well. Over a real wide-area link that setting belongs at 0 on both hosts,
and `tcp_wmem` and `tcp_rmem` above one bandwidth-delay product. Steps fit into TCP's initial window either way.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog

from edgeweave.clock import Clock
from edgeweave.errors import EdgeweaveError, UnavailableError
from edgeweave.interleave.nouns import Lane, LanesReady
from edgeweave.rpc.dialed_lane import DialedLane, LaneOptions, OnFrame, dialed_lane
from edgeweave.rpc.open_lane import OpenLane

_NUM_PINGS = 5
_ADVICE = (
    "on both hosts, let the last values of net.ipv4.tcp_wmem and tcp_rmem exceed bandwidth x round trip, and set "
    "tcp_slow_start_after_idle to 0; or one of the hosts is too slow for this rate"
)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Both lanes of a session, open and warm, and what was measured on them."""

    prefill: OpenLane
    decode: OpenLane
    ready: LanesReady
    end: asyncio.Future[EdgeweaveError]

    async def ended(self) -> EdgeweaveError:
        """Wait until a lane has ended, and return why. The other one ends with it."""
        return await asyncio.shield(self.end)


@asynccontextmanager
async def open_lanes(
    target: str, *, session: int, options: LaneOptions, on_frame: OnFrame, clock: Clock
) -> AsyncIterator[Lanes]:
    """Open both lanes of `session` to the cloud at `target`, warm them, and close them at the end of the block.

    Args:
        target: `host:port` of the cloud engine.
        session: number of a session that the cloud has accepted.
        options: what both lanes share.
        on_frame: gets every frame, with its lane, as it comes; only puts it somewhere.
        clock: times the warm-up.

    Raises:
        UnavailableError: nothing answers at `target`, or not in time.
        StaleSessionError: the cloud serves another session; names both numbers.
        SessionLostError: the lanes broke while they were opened.
    """
    end: asyncio.Future[EdgeweaveError] = asyncio.get_running_loop().create_future()
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(options.timeout_s):
                prefill, decode = [
                    await stack.enter_async_context(
                        dialed_lane(
                            lane,
                            target=target,
                            session=session,
                            options=options,
                            on_frame=on_frame,
                            end=end,
                            clock=clock,
                        )
                    )
                    for lane in (Lane.PREFILL, Lane.DECODE)
                ]
                ready = await _warm(prefill, decode=decode, chunk_bytes=options.chunk_bytes, clock=clock)
        except TimeoutError:
            complaint = f"the lanes to the cloud at {target} were not warm within {options.timeout_s:g} s"
            raise UnavailableError(f"{complaint}; is the link fast enough for one chunk?") from None
        _log.info(
            "lanes_ready",
            session=session,
            rtt_us=ready.rtt_us,
            prefill_bytes_per_s=ready.prefill_bytes_per_s,
        )
        _warn_if_slow(ready, options.link_gbit)
        yield Lanes(prefill.lane, decode.lane, ready, end)


async def _warm(prefill: DialedLane, *, decode: DialedLane, chunk_bytes: int, clock: Clock) -> LanesReady:
    """Send chunks and small frames there and back; the second chunk and the fastest small frame count."""
    await prefill.chunk_us(clock)
    rtt_us = min([await decode.ping_us(clock) for _ in range(_NUM_PINGS)])
    chunk_us = await prefill.chunk_us(clock)
    # Both ways are busy at the same time: all but one round trip of it is one transfer.
    transfer_us = max(1, chunk_us - rtt_us)
    return LanesReady(rtt_us=rtt_us, prefill_bytes_per_s=chunk_bytes * 1_000_000 // transfer_us)


def _warn_if_slow(ready: LanesReady, link_gbit: float | None) -> None:
    """Log a lane that carries less than half of what the link should, and where to look first."""
    lane_gbit = ready.prefill_bytes_per_s * 8 / 1e9
    if link_gbit is not None and lane_gbit < link_gbit / 2:
        _log.warning("lane_slow", lane_gbit=round(lane_gbit, 3), link_gbit=link_gbit, advice=_ADVICE)
