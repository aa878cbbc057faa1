"""The simulator: the real cores in virtual time give times that can be worked out by hand."""

from pathlib import Path

import pytest

from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import BubbleCause, PlanKind
from edgeweave.interleave.plans import PlanRequest
from edgeweave.sim.load import Arrival, Load, poisson, read_trace, uniform_load
from edgeweave.sim.loads import LOADS, load_named, profile_named
from edgeweave.sim.mesh import HANDOVER_US, LOCAL_US, Shape
from edgeweave.sim.profile import NPU, LayerTimes, Profile
from edgeweave.sim.run import simulate

PLAIN = Profile(
    name="plain",
    num_layers=10,
    head_layers=1,
    tail_layers=1,
    edge=LayerTimes(100, 0, 100, 0),
    cloud=LayerTimes(1000, 0, 1000, 0),
    logits_row_us=0,
    unit_us=0,
    token_bytes=1000,
)
LIMITS = Limits(max_prefill_tokens=512, max_seq_len=4096, chunk_tokens=512)
SERIAL = PlanRequest(PlanKind.SERIAL, num_segments=1)
ONE_WAY_US = 5000


def test_one_request_alone_takes_what_adds_up() -> None:
    """First token: task, head, link, body, link, tail, report. Each further one: head, link, body, link, tail.

    Only before the first of these does a unit of the edge follow another at once, so that it waits for the handover.
    """
    load = Load("one", (Arrival(0, 10, 4),))
    outcome = simulate(Shape(PLAIN, SERIAL, LIMITS, ONE_WAY_US, bytes_per_us=1000.0), load)
    frame_us, row_us = 10, 1
    first = LOCAL_US + 100 + (frame_us + ONE_WAY_US) + 8000 + (frame_us + ONE_WAY_US) + 100 + LOCAL_US
    later = 100 + (row_us + ONE_WAY_US) + 8000 + (row_us + ONE_WAY_US) + 100
    served = outcome.served[0]
    assert served.first_token_us == first
    assert served.per_token_us == pytest.approx(later + HANDOVER_US / 3)


def test_one_place_has_no_link() -> None:
    """All layers in one engine: a token costs its layers, and the change from one unit to the next."""
    load = Load("one", (Arrival(0, 10, 4),))
    outcome = simulate(Shape(PLAIN, SERIAL, LIMITS, None), load)
    assert outcome.served[0].per_token_us == pytest.approx(10 * 1000 + 4 / 3 * HANDOVER_US, rel=0.001)
    assert outcome.busy_share > 0.96


@pytest.mark.parametrize("kind", list(PlanKind))
def test_every_plan_serves_everything_without_departures(kind: PlanKind) -> None:
    """Each request gets exactly the tokens that it asked for, and the replay agrees with every choice."""
    load = uniform_load("small", num_requests=30, prompt_tokens=(8, 64), output_tokens=(2, 16), seed=3, max_open=8)
    outcome = simulate(Shape(NPU, PlanRequest(kind), LIMITS, ONE_WAY_US), load)
    wanted = [arrival.num_output_tokens for arrival in load.arrivals]
    assert [len(served.token_us) for served in outcome.served] == wanted
    assert outcome.num_departures == 0
    assert outcome.busy_us + sum(outcome.bubbles_us.values()) <= outcome.wall_us * 1.001


def test_weaving_hides_the_link_where_there_is_prefill() -> None:
    """On a prefill-rich load two prefills in flight beat one unit at a time, and wait less for hidden states."""
    load = load_named("prefill-rich")
    limits = Limits(max_batch_size=16, max_prefill_tokens=512, max_seq_len=640, chunk_tokens=512)
    serial, woven = (
        simulate(Shape(NPU, PlanRequest(kind), limits, 15_000), load)
        for kind in (PlanKind.SERIAL, PlanKind.TWO_P_ONE_D)
    )
    assert woven.tokens_per_s > 1.1 * serial.tokens_per_s
    waits = (BubbleCause.AWAIT_DECODE_HIDDEN, BubbleCause.AWAIT_PREFILL_HIDDEN)
    assert sum(woven.bubbles_us.get(c, 0) for c in waits) < sum(serial.bubbles_us.get(c, 0) for c in waits) / 3


@pytest.mark.parametrize("name", LOADS)
def test_named_loads_are_the_same_each_time(name: str) -> None:
    """A load is drawn from its seed."""
    assert load_named(name) == load_named(name)


def test_traces_are_read_in_both_formats(tmp_path: Path) -> None:
    """Times count from the first request, lengths are divided and stay at least 1."""
    azure = tmp_path / "a.csv"
    azure.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n"
        "2023-11-16 18:15:48.6805900,16,4\n"
    )
    mooncake = tmp_path / "m.jsonl"
    mooncake.write_text('{"timestamp": 1000, "input_length": 80, "output_length": 3, "hash_ids": [1]}\n')
    assert read_trace(azure, divide_by=8).arrivals == (Arrival(0, 46, 5), Arrival(2_000_000, 2, 1))
    assert read_trace(mooncake).arrivals == (Arrival(0, 80, 3),)
    assert read_trace(azure, limit=1).arrivals == (Arrival(0, 374, 44),)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "a trace is a .csv file"),
        ("a.csv", "TIMESTAMP,ContextTokens\nx,1\n", "a.csv:2: not a line of an Azure trace"),
        ("a.jsonl", "{}\n", "a.jsonl:1: not a line of a Mooncake trace"),
        ("b.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "the trace has no requests"),
    ],
)
def test_a_file_that_is_no_trace_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    """The error says which file and line cannot be read."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidRequestError, match=said):
        read_trace(path)


def test_unknown_names_are_told_with_those_that_exist() -> None:
    """A load or profile that does not exist is refused with the names of those that do."""
    with pytest.raises(InvalidRequestError, match="balanced"):
        load_named("nothing")
    with pytest.raises(InvalidRequestError, match="npu"):
        profile_named("nothing")


def test_a_profile_comes_from_a_file(tmp_path: Path) -> None:
    """A YAML file with the fields of a profile is one; a field too few is named."""
    path = tmp_path / "mine.yaml"
    times = "{step_fixed_us: 1, step_row_us: 2, prefill_fixed_us: 3, prefill_token_us: 4}"
    rest = "num_layers: 4\nhead_layers: 1\ntail_layers: 1\nlogits_row_us: 5\nunit_us: 6\n"
    path.write_text(f"edge: {times}\ncloud: {times}\n{rest}token_bytes: 7\n")
    assert profile_named(str(path)).cloud.step_us(10) == 21
    path.write_text(f"edge: {times}\ncloud: {times}\n{rest}")
    with pytest.raises(InvalidRequestError, match="token_bytes"):
        profile_named(str(path))


def test_poisson_arrivals_keep_lengths_and_rate() -> None:
    """Only the times change, to the asked rate on average."""
    arrivals = [Arrival(0, index + 1, 1) for index in range(4000)]
    spread = poisson(arrivals, rate_per_s=50.0, seed=1)
    assert [arrival.num_prompt_tokens for arrival in spread] == [arrival.num_prompt_tokens for arrival in arrivals]
    assert spread[-1].at_us / 4000 == pytest.approx(20_000, rel=0.05)
