"""What the scheduler tells is the state of the core at that moment."""

from enum import Enum

import pytest

from edgeweave.client.mesh_state import SessionState
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Bubble, BubbleCause, FinishReason, Stage, Timeline
from edgeweave.interleave.scheduler_events import Disconnected
from edgeweave.metrics import SchedulerCollector, registry_of
from fakes.driven import sample
from fakes.metered import MeteredScheduler, Scraped, ran


def scraped(mesh: MeteredScheduler, state: Enum = SessionState.READY) -> Scraped:
    return Scraped.of(registry_of("scheduler", SchedulerCollector(mesh.meter, state=lambda: state)))


def test_requests_sequences_and_blocks() -> None:
    """Running and waiting are requests, sequences stay until both sides freed them, and blocks with them."""
    mesh = MeteredScheduler()
    mesh.connect()
    mesh.decoding("one", "two")
    mesh.step_done(1, sample(1, 1, finish=FinishReason.STOP))
    for name in ("third", "fourth", "waits", "waits too"):
        mesh.ask(name)
    told = scraped(mesh)
    assert told.value("edgeweave:num_requests_running") == 3
    assert told.value("edgeweave:num_requests_waiting") == 2
    assert told.value("edgeweave:num_chunks_in_flight") == 2
    states = {state: told.value("edgeweave:num_sequences", state=state) for state in ("decoding", "releasing")}
    assert states == {"decoding": 1, "releasing": 1}
    for engine, account in ((side.value, account) for side, account in mesh.session.accounts.sides.items()):
        free = told.value("edgeweave:kv_blocks", engine=engine, state="free")
        assert free == account.num_free < account.capacity.num_blocks
        assert free + told.value("edgeweave:kv_blocks", engine=engine, state="reserved") == account.capacity.num_blocks
        usage = told.value("edgeweave:kv_cache_usage_perc", engine=engine)
        assert usage == pytest.approx(1 - free / account.capacity.num_blocks)


@pytest.mark.parametrize("state", SessionState)
def test_one_state_of_the_session_is_in_force(state: SessionState) -> None:
    """The others are 0, so that each can be drawn and alerted on."""
    told = scraped(MeteredScheduler(), state)
    assert told.sum("edgeweave:session_state") == 1
    assert told.value("edgeweave:session_state", state=state.name.lower()) == 1


def test_without_a_session_counters_stay_and_what_it_held_is_gone() -> None:
    """A round trip of a link that is down would be an old one."""
    mesh = MeteredScheduler()
    mesh.connect()
    mesh.decoding("one")
    before = scraped(mesh)
    after = scraped(mesh.tell(Disconnected("the link broke")), SessionState.DOWN)
    gone = {name for name, _ in before.samples} - {name for name, _ in after.samples}
    assert gone == {
        f"edgeweave:{name}"
        for name in (
            "num_chunks_in_flight",
            "num_sequences",
            "kv_blocks",
            "kv_cache_usage_perc",
            "round_trip_seconds",
            "prefill_lane_bytes_per_second",
            "hidden_share",
        )
    }
    for name in ("edgeweave:generation_tokens_total", "edgeweave:sessions_total"):
        assert after.value(name) == before.value(name) == 1


def test_time_bytes_and_share_are_those_of_the_reports() -> None:
    """Microseconds are told as seconds; what arrived at the cloud went up, what arrived at the edge came down."""
    mesh = MeteredScheduler()
    mesh.connect()
    bubbles = (Bubble(0, 4_000, BubbleCause.AWAIT_DECODE_HIDDEN),)
    cloud = Timeline((ran(Stage.STEP, 4_000, 9_000),), bubbles, 1_000, 10_000, received_bytes=70, inside_us=6_000)
    mesh.said(Side.CLOUD, cloud)
    mesh.said(Side.EDGE, Timeline((ran(Stage.HEAD, 0, 2_000),), (), 0, 2_000, received_bytes=30))
    mesh.decoding("one")
    mesh.step_done(1, sample(1, 1), turnaround_us=400)
    told = scraped(mesh)
    assert told.value("edgeweave:busy_seconds_total", engine="cloud") == 0.005
    assert told.value("edgeweave:idle_seconds_total", engine="cloud") == 0.001
    assert told.sum("edgeweave:bubble_seconds_total", engine="cloud") == 0.004
    labels = {"engine": "cloud", "cause": "await_decode_hidden", "kind": "decode"}
    assert told.value("edgeweave:bubble_seconds_total", **labels) == 0.004
    assert told.value("edgeweave:unit_time_seconds_sum", engine="edge", stage="head") == 0.002
    assert told.value("edgeweave:hop_bytes_total", direction="up") == 70
    assert told.value("edgeweave:hop_bytes_total", direction="down") == 30
    assert told.value("edgeweave:away_seconds_total") == pytest.approx(0.0006)
    assert told.value("edgeweave:inside_seconds_total") == 0.006
    assert told.value("edgeweave:hidden_share") == mesh.session.totals.hidden_share


def test_the_link_is_told_before_a_step_has_used_it() -> None:
    """Its warm-up measured it."""
    mesh = MeteredScheduler(rtt_us=25_000)
    mesh.connect()
    told = scraped(mesh)
    assert told.value("edgeweave:round_trip_seconds") == pytest.approx(0.025)
    assert told.value("edgeweave:prefill_lane_bytes_per_second") == 1 << 20


def test_where_the_edge_holds_all_layers_nothing_is_told_of_a_link() -> None:
    """There is none."""
    mesh = MeteredScheduler(cloud_kv=None)
    mesh.connect()
    mesh.decoding("one")
    told = scraped(mesh)
    assert told.labels_of("edgeweave:busy_seconds_total") == [{"engine": "edge"}]
    assert not [name for name, _ in told.samples if "away" in name or "hop" in name or "round_trip" in name]


def test_the_plan_in_force() -> None:
    """Its kind is a label; its values are those that engines order their work by."""
    mesh = MeteredScheduler()
    mesh.connect()
    told = scraped(mesh)
    assert told.labels_of("edgeweave:plan_info") == [{"kind": "2p1d"}]
    assert told.value("edgeweave:plan_number") == mesh.core.plan.plan
    assert told.value("edgeweave:plan_max_prefills") == 2
