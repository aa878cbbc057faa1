"""How the cloud spent a stretch of time: the difference of two states of the mesh.

Knows sums and shares. Does not know how a mesh is asked.
"""

import asyncio
from collections.abc import AsyncIterable
from contextlib import aclosing
from dataclasses import dataclass

from edgeweave.client import Client, EngineState, MeshState, SessionState
from edgeweave.client.engine_use import engine_use
from edgeweave.errors import UnavailableError
from edgeweave.interleave.nouns import BubbleCause

_INTERVAL_S = 0.1
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class CloudUse:
    """What the cloud did while requests were open, and what crossed the link meanwhile."""

    busy_us: int
    bubbles_us: dict[BubbleCause, int]
    link_bytes: int
    hidden_share: float
    rtt_us: int

    @property
    def open_us(self) -> int:
        """Time with requests open."""
        return self.busy_us + sum(self.bubbles_us.values())

    def share(self, time_us: int) -> float:
        """Return which share of the time with requests open `time_us` is."""
        return time_us / self.open_us if self.open_us else 0.0


def cloud_use(before: MeshState, after: MeshState) -> CloudUse:
    """Return what the cloud did between two states of one session.

    Raises:
        UnavailableError: there is no cloud, or another session began.
    """
    if before.cloud is None or after.cloud is None or before.session != after.session:
        raise UnavailableError("the session with the cloud broke while it was measured; ask again")
    use = engine_use(before.cloud, after.cloud)
    return CloudUse(
        busy_us=use.busy_us,
        bubbles_us=use.bubbles_us,
        link_bytes=use.received_bytes + use.sent_bytes,
        hidden_share=after.hidden_share,
        rtt_us=after.rtt_us,
    )


async def read_state(client: Client) -> MeshState:
    """Return the state of the mesh once it is at rest; see `first_at_rest`.

    Raises:
        UnavailableError: there is no session; or requests stay open, or the cloud silent, for long.
    """
    try:
        async with (
            asyncio.timeout(_TIMEOUT_S),
            aclosing(client.watch_mesh(interval_s=_INTERVAL_S)) as states,
        ):
            return await first_at_rest(states)
    except TimeoutError:
        raise UnavailableError(f"the mesh did not come to rest within {_TIMEOUT_S:g} s") from None


async def first_at_rest(states: AsyncIterable[MeshState]) -> MeshState:
    """Return the first state with no request open in which the cloud has reported all that it did before.

    Raises:
        UnavailableError: there is no session with a cloud.
    """
    quiet: EngineState | None = None
    async for state in states:
        if state.cloud is None or state.state is not SessionState.READY:
            raise UnavailableError(f"there is no session with a cloud: {state.reason or 'the mesh is centralized'}")
        if state.num_running or state.num_waiting or state.num_releasing:
            quiet = None
        elif quiet is None:
            quiet = state.cloud
        elif state.cloud.idle_us > quiet.idle_us:  # idle time is reported after what came before it
            return state
    raise UnavailableError("the scheduler stopped telling the state of the mesh")
