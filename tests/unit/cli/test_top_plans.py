"""What `top` shows of the plans: the real cores in virtual time, over a link of 1,000 km."""

import pytest

from edgeweave.cli.top_interval import MeshInterval, interval_between
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import BubbleCause, PlanKind
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.totals import NOT_HIDDEN
from edgeweave.sim.load import Load, uniform_load
from edgeweave.sim.loads import load_named
from edgeweave.sim.mesh import REPORT_INTERVAL_US, Shape, SimMesh
from edgeweave.sim.profile import NPU
from fakes.mesh_states import told_state

ONE_WAY_US = 5_000
LIMITS = Limits(max_batch_size=16, max_prefill_tokens=512, max_seq_len=640, chunk_tokens=512)
CHUNK_US = 90_000
"""The body of a chunk of 512 tokens, and its way there and back."""
ALONE = uniform_load("alone", num_requests=1, prompt_tokens=(8, 8), output_tokens=(200, 200), seed=1)


def watched(kind: PlanKind, load: Load, *, from_us: int, to_us: int) -> MeshInterval:
    """Serve a load, all of which waits from the start, and return what `top` shows of `[from_us, to_us)`."""
    mesh = SimMesh(Shape(NPU, PlanRequest(kind), LIMITS, ONE_WAY_US), lambda _emit, _now_us: None)
    for index, arrival in enumerate(load.arrivals):
        tokens = arrival.num_prompt_tokens, arrival.num_output_tokens
        mesh.submit(str(index), num_prompt_tokens=tokens[0], num_output_tokens=tokens[1])
    states = []
    for at_us in (from_us, to_us):
        mesh.events.run(until_us=at_us)
        states.append(told_state(mesh.scheduler, now_us=at_us))
    assert states[1].num_running, "the load ended before the interval"
    return interval_between(*states)


def test_serial_shows_what_the_link_and_the_other_side_cost() -> None:
    """The cloud waits for each step as long as it is outside: there and back, and a turnaround. Nothing is hidden."""
    interval = watched(PlanKind.SERIAL, ALONE, from_us=1_000_000, to_us=4_000_000)
    cloud, edge = interval.engines[Side.CLOUD], interval.engines[Side.EDGE]
    waited_us = sum(cloud.bubbles_us.get(cause, 0) for cause in NOT_HIDDEN)
    turnaround_us = edge.busy_us / interval.num_steps
    assert waited_us == pytest.approx(interval.num_steps * (2 * ONE_WAY_US + turnaround_us), rel=0.1)
    assert waited_us + cloud.busy_us == cloud.counted_us
    assert interval.hidden_share == pytest.approx(0.0, abs=0.02)
    assert interval.steps_in_flight == pytest.approx(1.0, abs=0.02)


def test_two_prefills_and_a_step_leave_the_cloud_no_bubbles() -> None:
    """Under load, with enough prefill for each step, the round trip is hidden."""
    interval = watched(PlanKind.TWO_P_ONE_D, load_named("prefill-rich"), from_us=1_000_000, to_us=4_000_000)
    cloud = interval.engines[Side.CLOUD]
    assert sum(cloud.share(bubble_us) or 0.0 for bubble_us in cloud.bubbles_us.values()) < 0.02
    assert (cloud.share(cloud.busy_us) or 0.0) > 0.98
    assert (interval.hidden_share or 0.0) > 0.95
    assert interval.state.num_waiting > 0


@pytest.mark.parametrize("kind", list(PlanKind))
def test_busy_bubbles_and_idle_are_the_interval(kind: PlanKind) -> None:
    """Under every plan; the shares are whole, and only what was open at an end, a chunk at most, is out of place."""
    interval = watched(kind, load_named("prefill-rich"), from_us=500_000, to_us=4_500_000)
    for use in interval.engines.values():
        shares = [use.share(each) or 0.0 for each in (use.busy_us, use.idle_us, *use.bubbles_us.values())]
        assert sum(shares) == pytest.approx(1.0, abs=1e-9)
        assert use.counted_us == pytest.approx(use.reported_us, abs=CHUNK_US)
        assert use.reported_us == pytest.approx(interval.wall_us, abs=REPORT_INTERVAL_US)
    assert BubbleCause.LOST not in interval.engines[Side.CLOUD].bubbles_us
