"""What the cloud did between two states of the mesh."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from edgeweave.cli.cloud_use import cloud_use, first_at_rest
from edgeweave.client import EngineState, MeshState, SessionState
from edgeweave.client.mesh_state import mesh_state_of
from edgeweave.errors import UnavailableError
from edgeweave.interleave.nouns import BubbleCause
from edgeweave.v1 import scheduler_pb2 as pb


def _state(
    *, busy_us: int = 0, await_us: int = 0, num_bytes: int = 0, session: int = 1, idle_us: int = 1000
) -> MeshState:
    state = mesh_state_of(pb.WatchMeshResponse(state=pb.SESSION_STATE_READY, session=session, hidden_share=0.25))
    cloud = EngineState(
        busy_us=busy_us,
        bubbles_us={BubbleCause.AWAIT_DECODE_HIDDEN: await_us, BubbleCause.LOST: 5},
        idle_us=idle_us,
        num_units=0,
        num_skipped_rows=0,
        num_blocks=0,
        num_free_blocks=0,
        received_bytes=num_bytes,
        sent_bytes=num_bytes,
    )
    return replace(state, cloud=cloud, rtt_us=10_000)


def test_use_is_the_difference_of_two_states() -> None:
    """What was before does not count, nor does time without requests; a cause that did not grow is left out."""
    use = cloud_use(_state(busy_us=100, await_us=50, num_bytes=1000), _state(busy_us=400, await_us=150, num_bytes=3000))
    assert use.bubbles_us == {BubbleCause.AWAIT_DECODE_HIDDEN: 100}
    assert (use.open_us, use.share(use.busy_us), use.share(100)) == (400, 0.75, 0.25)
    assert (use.link_bytes, use.hidden_share, use.rtt_us) == (4000, 0.25, 10_000)


def test_two_sessions_are_not_compared() -> None:
    """Sums begin anew with a session, so their difference would mean nothing."""
    before = _state(busy_us=100, await_us=50, num_bytes=1000)
    for after in (_state(busy_us=1, await_us=1, num_bytes=1, session=2), replace(before, cloud=None)):
        with pytest.raises(UnavailableError, match="broke while it was measured"):
            cloud_use(before, after)


async def _stream(*states: MeshState) -> AsyncIterator[MeshState]:
    for state in states:
        yield state


async def test_a_mesh_is_at_rest_when_the_cloud_has_reported_after_the_last_request() -> None:
    """Reports come late: neither a busy mesh is at rest nor one whose last report may still be to come."""
    resting = _state(idle_us=9)
    busy = replace(resting, num_running=1)
    states = _stream(_state(idle_us=1), busy, busy, _state(idle_us=2), _state(idle_us=2), resting, _state(idle_us=10))
    assert await first_at_rest(states) is resting


async def test_without_a_session_there_is_no_rest() -> None:
    """A mesh that lost its cloud, never had one, or says nothing more is an error, not a wait."""
    for state in (replace(_state(), cloud=None), replace(_state(), state=SessionState.DOWN)):
        with pytest.raises(UnavailableError, match="no session with a cloud"):
            await first_at_rest(_stream(_state(), state))
    with pytest.raises(UnavailableError, match="stopped telling"):
        await first_at_rest(_stream(_state()))
