"""What `WatchMesh` tells is what the core knows, and what a client reads is what was told."""

from edgeweave.client.mesh_state import SessionState
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Bubble, BubbleCause, FinishReason, Timeline
from edgeweave.interleave.recent_times import WINDOW_US, Quantiles
from edgeweave.interleave.request_totals import RequestEnd
from fakes.driven import DrivenScheduler, sample
from fakes.mesh_states import told_state


def test_before_the_first_request_nothing_is_made_up() -> None:
    """Quantiles of nothing are absent, not zero."""
    state = told_state(DrivenScheduler().core, now_us=5)
    assert (state.state, state.reason, state.clock_us) == (SessionState.DOWN, "no session yet", 5)
    assert (state.queue_time, state.time_to_first_token, state.time_per_token, state.ends) == (None, None, None, {})


def test_times_and_ends_of_requests_are_told() -> None:
    """As they are when they are asked for: a minute later the times are gone, and the ends stay."""
    mesh = DrivenScheduler().connect()
    mesh.ask("a", 4)
    mesh.now_us = 300
    mesh.chunk_done(1, sample(1, 0))
    mesh.now_us = 400
    mesh.step_done(1, sample(1, 1, finish=FinishReason.STOP), turnaround_us=20)
    state = told_state(mesh.core, now_us=400)
    assert state.queue_time == Quantiles(1, 0, 0, 0)
    assert state.time_to_first_token == Quantiles(1, 300, 300, 300)
    assert state.time_per_token == Quantiles(1, 100, 100, 100)
    assert (state.num_prefill_tokens, state.num_output_tokens, state.steps_us) == (4, 2, 120)
    later = told_state(mesh.core, now_us=400 + WINDOW_US)
    assert (later.time_to_first_token, later.ends) == (None, {RequestEnd.STOP: 1})


def test_what_is_open_is_told() -> None:
    """Sequences that wait for prefill, and those that are through it."""
    mesh = DrivenScheduler().connect().decoding("a", "b").ask("c")
    state = told_state(mesh.core, now_us=0)
    assert (state.num_running, state.num_decoding, state.num_chunks) == (3, 2, 1)


def test_an_engine_is_told_with_its_clock() -> None:
    """By which shares are of the time between two reports."""
    mesh = DrivenScheduler().connect()
    mesh.said(Side.CLOUD, Timeline((), (Bubble(10, 25, BubbleCause.GRACE),), idle_us=5, clock_us=30))
    cloud = told_state(mesh.core, now_us=0).cloud
    assert cloud is not None
    assert (cloud.clock_us, cloud.idle_us, cloud.bubbles_us) == (30, 5, {BubbleCause.GRACE: 15})
    assert cloud.reserved_share == 0.0
