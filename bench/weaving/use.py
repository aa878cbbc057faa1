"""What the engines did during one run: the difference of two states of the mesh at rest.

Knows sums. Does not know who asked.
"""

import asyncio
from collections.abc import AsyncIterable
from contextlib import aclosing
from dataclasses import dataclass

from edgeweave.client import Client, MeshState, SessionState
from edgeweave.client.engine_use import EngineUse, engine_use, rows_of
from edgeweave.client.mesh_state import UnitSum
from edgeweave.errors import UnavailableError
from edgeweave.interleave.nouns import BubbleCause, Stage

_INTERVAL_S = 0.1
_TIMEOUT_S = 30.0


def cause_words(cause: BubbleCause) -> str:
    """Return the name of a cause as it is read."""
    return cause.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class MeshUse:
    """What a mesh did; `cloud` is `None` in one place.

    `rtt_us` is the shortest round trip of steps,
    `lane_bytes_per_s` what the prefill lane carried when it was warmed.
    """

    edge: EngineUse
    cloud: EngineUse | None
    rtt_us: int
    lane_bytes_per_s: int
    num_steps: int
    num_preemptions: int
    num_departures: int
    hidden_bytes: int

    @property
    def body(self) -> EngineUse:
        """The engine that runs the body: the cloud, or in one place the edge."""
        return self.cloud or self.edge


def use_between(before: MeshState, after: MeshState) -> MeshUse:
    """Return what a mesh did between two states of one session.

    Raises:
        UnavailableError: another session began in between, or there is none.
    """
    if before.edge is None or after.edge is None or before.session != after.session:
        raise UnavailableError(f"the session broke while it was measured: {after.reason or 'no reason was given'}")
    cloud = engine_use(before.cloud, after.cloud) if before.cloud is not None and after.cloud is not None else None
    return MeshUse(
        edge=engine_use(before.edge, after.edge),
        cloud=cloud,
        rtt_us=after.rtt_us,
        lane_bytes_per_s=after.prefill_bytes_per_s,
        num_steps=after.num_steps_done - before.num_steps_done,
        num_preemptions=after.num_preemptions - before.num_preemptions,
        num_departures=after.num_departures - before.num_departures,
        hidden_bytes=cloud.received_bytes + cloud.sent_bytes if cloud is not None else 0,
    )


def steps_so_far(state: MeshState) -> dict[int, UnitSum]:
    """Return the decode steps of the engine that has the body, by rows, since the session began."""
    if state.cloud is not None:
        return rows_of(state.cloud.units, Stage.STEP)
    return rows_of(state.edge.units, Stage.TURNAROUND) if state.edge is not None else {}


async def state_at_rest(client: Client) -> MeshState:
    """Return the state of the mesh once no request is open and every engine has reported all that it did.

    Raises:
        UnavailableError: there is no session, or it does not come to rest in time.
    """
    try:
        async with asyncio.timeout(_TIMEOUT_S), aclosing(client.watch_mesh(interval_s=_INTERVAL_S)) as states:
            return await first_at_rest(states)
    except TimeoutError:
        raise UnavailableError(f"the mesh did not come to rest within {_TIMEOUT_S:g} s") from None


async def first_at_rest(states: AsyncIterable[MeshState]) -> MeshState:
    """Return the first state at rest: each engine has reported idle time since, which comes after all else.

    Raises:
        UnavailableError: there is no session.
    """
    quiet: list[int] | None = None
    async for state in states:
        engines = [engine for engine in (state.edge, state.cloud) if engine is not None]
        if not engines or state.state is not SessionState.READY:
            raise UnavailableError(f"the mesh does not serve: {state.reason or state.state.name.lower()}")
        idle_us = [engine.idle_us for engine in engines]
        if state.num_running or state.num_waiting or state.num_releasing:
            quiet = None
        elif quiet is None:
            quiet = idle_us
        elif all(now > then for now, then in zip(idle_us, quiet, strict=True)):
            return state
    raise UnavailableError("the scheduler stopped telling the state of the mesh")
