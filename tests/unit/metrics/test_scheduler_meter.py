"""What clients see of their requests, and what the scheduler hears of engines: each counted once, at its time."""

from edgeweave.errors import OverloadedError, SessionLostError, UnitFailedError
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import (
    Bubble,
    BubbleCause,
    ErrorCode,
    FinishReason,
    KvCapacity,
    Stage,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_events import Cancel, Disconnected
from edgeweave.metrics.histogram import Histogram
from fakes.driven import sample
from fakes.metered import MeteredScheduler, ran


def served() -> MeteredScheduler:
    """A core with a session, at the time 0."""
    mesh = MeteredScheduler()
    mesh.connect()
    return mesh


def observed(times: Histogram) -> tuple[int, int]:
    """How many values, and their sum in microseconds."""
    return times.num_observed, times.total


def test_the_times_of_a_request() -> None:
    """Queue and prefill make up the time to the first token, and with decode the time to the last."""
    mesh = served()
    mesh.ask("first")
    mesh.ask("second")  # with its chunk, all are away that the plan allows
    mesh.now_us = 1_000
    mesh.ask("queued", max_tokens=3)
    mesh.now_us = 5_000
    mesh.chunk_done(1, sample(1, 0))  # the third is admitted
    mesh.now_us = 9_000
    mesh.chunk_done(2, sample(2, 0)).chunk_done(3, sample(3, 0))
    mesh.now_us = 12_000
    mesh.step_done(1, sample(3, 1))
    mesh.now_us = 17_000
    mesh.step_done(2, sample(3, 2, finish=FinishReason.LENGTH))
    requests = mesh.meter.requests
    assert observed(requests.queue) == (3, 4_000)
    assert observed(requests.first_token) == (3, 5_000 + 9_000 + 8_000)
    assert observed(requests.prefill) == (3, 5_000 + 9_000 + 4_000)
    assert observed(requests.next_token) == (2, 3_000 + 5_000)
    assert observed(requests.decode) == (1, 8_000)
    assert observed(requests.per_token) == (1, 4_000)
    assert observed(requests.whole) == (1, 16_000)
    assert observed(requests.inference) == (1, 12_000)
    assert (requests.num_prompt_tokens, requests.successes["length"]) == (9, 1)
    assert (requests.prompt_tokens.total, requests.output_tokens.total) == (3, 3)


def test_a_preempted_request_is_one_request() -> None:
    """Its second admission counts neither its prompt again nor its queue; the wait is between two of its tokens."""
    mesh = MeteredScheduler(edge_kv=KvCapacity(4, 6), cloud_kv=KvCapacity(4, 6), limits=Limits(max_seq_len=20))
    mesh.connect()
    mesh.decoding("a", "b", max_tokens=16)
    tokens, step = {1: 1, 2: 1}, 0
    while not mesh.core.num_preemptions:
        step += 1
        mesh.now_us += 100
        mesh.step_done(step, *(sample(sequence, index) for sequence, index in tokens.items()))
        tokens = {sequence: index + 1 for sequence, index in tokens.items()}
    mesh.now_us += 100
    mesh.step_done(step + 1, sample(1, tokens[1], finish=FinishReason.STOP))
    mesh.released(1, 2)
    requests = mesh.meter.requests
    assert mesh.session.live_sequence(3) is not None
    assert requests.queue.num_observed == requests.first_token.num_observed == 2
    assert requests.num_prompt_tokens == 6
    waited_us = 700
    mesh.now_us += waited_us
    before_us = requests.next_token.total
    mesh.chunk_done(3, sample(3, tokens[2]))
    assert requests.next_token.total == before_us + waited_us + 100
    assert requests.first_token.num_observed == 2


def test_how_requests_end() -> None:
    """By a stop token, by length, by a client that left, or by an error, which is named by its class."""
    mesh = MeteredScheduler(limits=Limits(max_seq_len=64, max_waiting=1))
    mesh.ask("too early")
    mesh.connect()
    mesh.decoding("stops", "ends", "left", "fails", "lost")
    mesh.step_done(1, sample(1, 1, finish=FinishReason.STOP), sample(2, 1, finish=FinishReason.LENGTH))
    mesh.tell(Cancel("left")).tell(Cancel("left"))
    mesh.said(Side.CLOUD, UnitFailed((4,), ErrorCode.COMPUTE, Stage.STEP, step=2))
    for name in ("p", "q", "waits", "too many"):
        mesh.ask(name)
    mesh.tell(Disconnected("the link broke"))
    requests = mesh.meter.requests
    assert requests.successes == {"stop": 1, "length": 1, "abort": 1}
    assert requests.failures == {
        "UnavailableError": 1,
        UnitFailedError.__name__: 1,
        OverloadedError.__name__: 1,
        SessionLostError.__name__: 4,
    }
    assert (requests.whole.num_observed, requests.num_open) == (2, 0)


def test_a_resumed_request_counts_what_it_gets_here() -> None:
    """The tokens that it came with were counted where they were sampled; its length is that of all."""
    mesh = served()
    mesh.tell(Request("resumed", (1, 2), max_tokens=4, output=[7, 8], arrived_us=0))
    mesh.now_us = 2_000
    mesh.chunk_done(1, sample(1, 2))
    mesh.now_us = 3_000
    mesh.step_done(1, sample(1, 3, finish=FinishReason.LENGTH))
    requests = mesh.meter.requests
    assert (observed(requests.first_token), observed(requests.next_token)) == ((1, 2_000), (1, 1_000))
    assert (requests.num_prompt_tokens, requests.output_tokens.total) == (2, 4)


def test_engines_and_link_are_counted_over_all_sessions() -> None:
    """A counter that went back would look like a restart of the scheduler."""
    mesh = served()
    timeline = Timeline((ran(Stage.STEP, 5, 9),), (Bubble(0, 5, BubbleCause.AWAIT_DECODE_HIDDEN),), 0, 9, inside_us=4)
    mesh.said(Side.CLOUD, timeline).said(Side.EDGE, StepDone(1, (), away_us=30, turnaround_us=6))
    mesh.session.replay.num_departures = 2
    mesh.tell(Disconnected("the link broke")).connect(2)
    mesh.said(Side.CLOUD, timeline)
    mesh.session.replay.num_departures = 1
    meter = mesh.meter
    cloud = meter.engines[Side.CLOUD]
    assert (cloud.busy_us, sum(cloud.bubbles_us.values()), cloud.inside_us) == (8, 10, 8)
    assert (meter.num_sessions, meter.num_departures) == (2, 3)
    assert (meter.away_us, observed(meter.step_away)) == (36, (1, 30))
    assert set(meter.engines) == set(Side)


def test_without_a_cloud_there_is_one_engine() -> None:
    """Nothing is told of an engine that is not there."""
    mesh = MeteredScheduler(cloud_kv=None)
    mesh.connect()
    assert set(mesh.meter.engines) == {Side.EDGE}
