"""What engines did between two states at rest."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgeweave.client import EngineState, MeshState, SessionState
from edgeweave.client.mesh_state import UnitSum, mesh_state_of
from edgeweave.clock import MonotonicClock
from edgeweave.engine.worker import THREAD_NAME, Worker
from edgeweave.errors import UnavailableError
from edgeweave.interleave.nouns import BubbleCause, Stage
from edgeweave.v1 import scheduler_pb2 as pb
from weaving.cpu import control_share, core_shares, cpu_seconds, parse_stat
from weaving.use import first_at_rest, steps_so_far, use_between

STEP, SEGMENT, TURNAROUND = (Stage.STEP, 4), (Stage.SEGMENT, 1), (Stage.TURNAROUND, 4)


def _engine(idle_us: int = 0, **units: tuple[int, int]) -> EngineState:
    kinds = {"step": STEP, "segment": SEGMENT, "turnaround": TURNAROUND}
    return EngineState(
        busy_us=sum(total_us for _, total_us in units.values()),
        bubbles_us={BubbleCause.LINK: 5 * len(units)},
        idle_us=idle_us,
        num_units=0,
        num_skipped_rows=0,
        num_blocks=0,
        num_free_blocks=0,
        received_bytes=len(units),
        sent_bytes=0,
        units={kinds[name]: UnitSum(*sums) for name, sums in units.items()},
    )


def _state(edge: EngineState | None, cloud: EngineState | None = None, *, num_running: int = 0) -> MeshState:
    state = mesh_state_of(pb.WatchMeshResponse(state=pb.SESSION_STATE_READY, session=3, reason="gone"))
    return replace(state, edge=edge, cloud=cloud, num_running=num_running)


def test_use_is_the_difference_of_two_states() -> None:
    """Units that did not run in between are not there, those of a new kind are."""
    before = _state(_engine(), _engine(step=(1, 10)))
    after = _state(_engine(turnaround=(2, 6)), _engine(step=(1, 10), segment=(3, 90)))
    use = use_between(before, after)
    assert use.cloud is use.body
    assert use.body.units == {SEGMENT: UnitSum(3, 90)}
    assert (use.body.busy_us, use.body.open_us, use.body.largest_bubble) == (90, 95, BubbleCause.LINK)
    assert use.edge.rows(Stage.TURNAROUND) == {4: UnitSum(2, 6)}
    assert use.hidden_bytes == 1


def test_steps_are_those_of_whoever_has_the_body() -> None:
    assert steps_so_far(_state(_engine(turnaround=(2, 6)))) == {4: UnitSum(2, 6)}
    assert steps_so_far(_state(_engine(turnaround=(2, 6)), _engine(step=(1, 10)))) == {4: UnitSum(1, 10)}


def test_a_session_that_broke_is_said() -> None:
    state = _state(_engine())
    with pytest.raises(UnavailableError, match="the session broke while it was measured: gone"):
        use_between(state, replace(state, session=4))


async def _given(*states: MeshState) -> AsyncIterator[MeshState]:
    for state in states:
        yield state


async def test_rest_is_when_every_engine_has_reported_since() -> None:
    """One engine that reports earlier than the other does not end the wait, nor does time before the last request."""
    states = [
        _state(_engine(10), _engine(10)),
        _state(_engine(20), _engine(20), num_running=1),
        _state(_engine(30), _engine(20)),
        _state(_engine(40), _engine(20)),
        _state(_engine(40), _engine(30)),
    ]
    assert await first_at_rest(_given(*states)) is states[-1]


async def test_a_mesh_without_a_session_is_refused() -> None:
    down = replace(_state(_engine()), state=SessionState.DOWN, reason=None)
    with pytest.raises(UnavailableError, match="the mesh does not serve: down"):
        await first_at_rest(_given(down))


def test_cpu_time_of_a_process_whose_name_has_spaces() -> None:
    line = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 1 1 1"
    assert parse_stat(line) == 2.0
    assert core_shares({"a": 1.0}, {"a": 2.0}, wall_s=4.0) == {"a": 0.25}


def test_control_is_what_is_not_computing() -> None:
    """The scheduler, and both engines without their compute threads; a link is no part of a mesh."""
    cpu = {"link": 0.5, "scheduler": 0.1, "edge": 0.3, "cloud": 1.0, "edge compute": 0.2, "cloud compute": 0.9}
    assert control_share(cpu) == pytest.approx(0.3)


def test_cpu_time_of_a_compute_thread() -> None:
    """The worker's thread is known by its name."""
    worker = Worker(clock=MonotonicClock())
    worker.start()
    try:
        assert cpu_seconds({"edge": os.getpid()})["edge compute"] >= 0
        names = [path.read_text(encoding="ascii").strip() for path in Path("/proc/self/task").glob("*/comm")]
        assert THREAD_NAME in names
    finally:
        worker.stop()


def test_cpu_time_of_this_process() -> None:
    assert cpu_seconds({"us": os.getpid()})["us"] > 0
