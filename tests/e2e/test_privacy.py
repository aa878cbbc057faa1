"""What crosses the link says nothing of prompts, answers and clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random

import httpx
import pytest
import pytest_asyncio
from google.protobuf.message import Message

from edgeweave.text import TextModel
from edgeweave.v1 import cloud_pb2 as pb
from fakes.http2 import Call, calls_in
from fakes.processes import ProcessMesh, flags_of
from fakes.recorder import Recorder, recorder_to
from fakes.searching import spellings_of_text, spellings_of_tokens
from models.served import greedy_answer
from models.tiny import kept

pytestmark = pytest.mark.asyncio(loop_scope="session")

TASKS = "/edgeweave.v1.CloudService/RunCloudTasks"
FRAMES = "/edgeweave.v1.CloudService/CarryFrames"
MARKER_LENGTH = 8
NUM_TRIES = 4
TOKEN_BYTES = 128
_SHAPES = ((20, 6), (600, 6), (748, 22), (748, 22), (20, 8))
"""Tokens of prompt and answer of each request of a scenario."""


@dataclass(frozen=True)
class Scenario:
    """Prompts and answers of one run: alone, in chunks, two that do not both fit, and one that is aborted."""

    alone: tuple[list[int], list[int]]
    chunked: tuple[list[int], list[int]]
    crowded: tuple[tuple[list[int], list[int]], tuple[list[int], list[int]]]
    aborted: tuple[list[int], list[int]]

    @property
    def pairs(self) -> list[tuple[list[int], list[int]]]:
        return [self.alone, self.chunked, *self.crowded, self.aborted]

    @property
    def tokens(self) -> set[int]:
        return {token for prompt, answer in self.pairs for token in (*prompt, *answer)}


def scenario(model: Path, *, first_token: int, avoid: Scenario | None = None) -> Scenario:
    """Return a scenario whose prompts begin at `first_token`, and which has no token of `avoid`."""
    key = f"{model.name}-scenario-{first_token}-{sha256(repr(_SHAPES).encode()).hexdigest()[:8]}"
    taken = set() if avoid is None else avoid.tokens

    def build(folder: Path) -> None:
        pool = range(first_token, first_token + MARKER_LENGTH)
        pairs = [_pair(model, pool, shape=shape, taken=taken, name=name) for name, shape in enumerate(_SHAPES)]
        (folder / "pairs.json").write_text(json.dumps(pairs), encoding="ascii")

    alone, chunked, one, other, aborted = json.loads((kept(key, build) / "pairs.json").read_text(encoding="ascii"))
    return Scenario(tuple(alone), tuple(chunked), (tuple(one), tuple(other)), tuple(aborted))


def _pair(
    model: Path, pool: range, *, shape: tuple[int, int], taken: set[int], name: int
) -> tuple[list[int], list[int]]:
    """Return a prompt that begins with all of `pool` in order, and an answer without a token of `taken`."""
    for attempt in count():
        draw = Random(f"{pool.start} {name} {attempt}")  # noqa: S311 - numbers of a test
        prompt = [*pool, *(draw.choice(pool) for _ in range(shape[0] - len(pool)))]
        answer = greedy_answer(model, prompt, num_tokens=shape[1])
        if not taken & set(answer):
            return prompt, answer
    raise AssertionError("count ends never")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def recorder(mesh: ProcessMesh) -> AsyncIterator[Recorder]:
    """Records what the link carries to the cloud; one unit is away at a time, so that order does not hang on time."""
    async with (
        recorder_to(flags_of(mesh["cloud"])["--listen"]) as (recorder, address),
        mesh.replaced(link={"target": address, "delay_ms": 4}, scheduler={"chunk_tokens": 256, "plan": "serial"}),
    ):
        yield recorder


async def answered(mesh: ProcessMesh, pair: tuple[list[int], list[int]]) -> None:
    """Send a prompt and compare its answer."""
    prompt, answer = pair
    deltas = mesh.client.generate(prompt, max_tokens=len(answer), request_id=f"request-{hash(tuple(prompt))}")
    assert [token async for delta in deltas for token in delta.token_ids] == answer


async def run(mesh: ProcessMesh, recorder: Recorder, steps: Scenario) -> list[Call]:
    """Run a scenario in a session of its own and return the calls that the cloud got."""
    session = (await mesh.state()).session
    recorder.begin()
    before = await mesh.serving(after=session)
    await answered(mesh, steps.alone)
    await answered(mesh, steps.chunked)
    await asyncio.gather(*(answered(mesh, pair) for pair in steps.crowded))
    async with aclosing(mesh.client.generate(steps.aborted[0], max_tokens=40)) as deltas:
        assert (await anext(deltas)).token_ids[0] == steps.aborted[1][0]
    after = await mesh.free()
    assert after.num_preemptions == before.num_preemptions + 1
    assert after.session == before.session
    return [call for sent in recorder.upward for call in calls_in(bytes(sent))]


def told(calls: Sequence[Call]) -> dict[str, list[str]]:
    """Return headers and messages of each call, as text, without what may differ.

    That is: the number of the session, contents and checksums of payloads, times, the plan's time of return, which is
    measured, and so the number of the plan.
    """
    names = [_name(call) for call in calls]
    assert len(set(names)) == len(names)
    return {
        name: [*(f"{key}: {value}" for key, value in sorted(call.headers)), *_messages(call)]
        for name, call in zip(names, calls, strict=True)
    }


def _name(call: Call) -> str:
    if call.path != FRAMES:
        return call.path
    return f"{FRAMES} {pb.Lane.Name(pb.CarryFramesRequest.FromString(call.messages[0]).open.lane)}"


def _messages(call: Call) -> list[str]:
    if call.path == TASKS:
        tasks = [_without_times(pb.RunCloudTasksRequest.FromString(message)) for message in call.messages]
        return [str(task) for task in tasks if task.WhichOneof("kind") != "plan"]
    if call.path == FRAMES:
        return [str(_without_payload(pb.CarryFramesRequest.FromString(message))) for message in call.messages]
    return [message.hex() for message in call.messages]


def _without_times(task: pb.RunCloudTasksRequest) -> pb.RunCloudTasksRequest:
    if task.HasField("attach"):
        task.attach.session = 0
    if task.HasField("chunk"):
        task.chunk.plan = 0
    return task


def _without_payload(frame: pb.CarryFramesRequest) -> Message:
    if frame.HasField("open"):
        frame.open.session = 0
    frame.sent_us = frame.crc32c = 0
    frame.payload = f"{len(frame.payload)} bytes".encode()
    return frame


async def test_runs_without_a_common_token_look_alike(mesh: ProcessMesh, recorder: Recorder, model: Path) -> None:
    """Two runs of equal lengths and without a common token tell the cloud the same, through chunks, preemption, abort.

    A preemption and an abort happen at a time, so a run may differ from its own repetition; then both are run again.
    """
    one = scenario(model, first_token=10)
    other = scenario(model, first_token=200, avoid=one)
    assert not one.tokens & other.tokens
    for _ in range(NUM_TRIES):
        first, second = [told(await run(mesh, recorder, steps)) for steps in (one, other)]
        if first == second:
            break
        print(*_differences(first, second), sep="\n")
    assert first == second
    assert set(first) == {TASKS, f"{FRAMES} LANE_PREFILL", f"{FRAMES} LANE_DECODE", "/grpc.health.v1.Health/Watch"}
    text = "\n".join(first[TASKS])
    assert text.count("chunk {") >= 10
    assert text.count("release {") >= 4
    assert len(first[f"{FRAMES} LANE_DECODE"]) > 60


def _differences(first: dict[str, list[str]], second: dict[str, list[str]]) -> list[str]:
    lines = []
    for name in sorted({*first, *second}):
        pairs = zip(first.get(name, []), second.get(name, []), strict=False)
        index = next((index for index, (left, right) in enumerate(pairs) if left != right), None)
        sizes = [len(each.get(name, [])) for each in (first, second)]
        if index is not None:
            lines.append(f"{name} {sizes} differs at {index}: {first[name][index]} / {second[name][index]}")
        elif sizes[0] != sizes[1]:
            lines.append(f"{name} has {sizes}")
    return lines


TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
HEADERS = {
    "traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01",
    "baggage": "customer=baggage-marker-31415",
    "x-request-id": "request-marker-27182",
    "user-agent": "agent-marker-16180",
}
SECRETS = (*HEADERS.values(), TRACE_ID, "baggage-marker-31415", "user-marker-14142")


async def test_no_token_text_or_metadata_crosses(mesh: ProcessMesh, recorder: Recorder, model: Path) -> None:
    """Eight consecutive tokens, text of eight characters, names and trace context of a client are not in the bytes.

    Neither in any width nor in any encoding. The same search finds them between client, gateway and scheduler.
    """
    text_model = TextModel.load(model)
    text = "Qx7!Zk9#Wv3$ is the word that nobody may read"
    async with (
        recorder_to(flags_of(mesh["scheduler"])["--listen"]) as (inside, address),
        recorder_to(mesh.url) as (outside, front),
        mesh.replaced(gateway={"scheduler": address}),
    ):
        await mesh.serving_http()
        session = (await mesh.state()).session
        recorder.begin()
        await mesh.serving_http(after=session)
        body = {"model": model.name, "prompt": text, "max_tokens": 24, "temperature": 0, "user": "user-marker-14142"}
        async with httpx.AsyncClient(headers=HEADERS, trust_env=False) as http:
            response = await http.post(f"http://{front}/v1/completions", json={**body, "ignore_eos": True})
        response.raise_for_status()
        await mesh.free()
        sent_inside, sent_outside = _searched(inside), b"".join(outside.upward)
    prompt = text_model.encode(text)
    answer = greedy_answer(model, prompt, num_tokens=24)
    spelled = [*_spellings(prompt), *_spellings(answer), *_text_spellings(text, *SECRETS)]
    crossed = _searched(recorder)
    assert len(crossed) > len(prompt) * TOKEN_BYTES
    assert not [how for how, pattern in spelled if pattern in crossed]
    assert {how for how, pattern in _spellings(prompt) if pattern in sent_inside} >= {"varint"}
    assert all(secret.encode() in sent_outside for secret in (text, *SECRETS))


@pytest.mark.parametrize("token_ids", [range(10, 18), (3, 4095, 17, 300, 65_535, 70_000, 2**31, 9)], ids=str)
async def test_the_search_finds_every_spelling(token_ids: Sequence[int]) -> None:
    """In a buffer that holds a spelling at an odd place, exactly that one and its equals are found."""
    spelled = [*spellings_of_tokens(token_ids), *spellings_of_text("Qx7!Zk9#")]
    assert {"varint", "uint32 little", "uint64 big", "utf-8", "utf-16-le"} < {how for how, _ in spelled}
    for how, pattern in spelled:
        buffer = b"\1\2\3" + pattern + b"\4"
        assert how in {other for other, sought in spelled if sought in buffer}


def _spellings(token_ids: Sequence[int]) -> list[tuple[str, bytes]]:
    windows = [token_ids[at : at + MARKER_LENGTH] for at in range(len(token_ids) - MARKER_LENGTH + 1)]
    return [spelling for window in windows for spelling in spellings_of_tokens(window)]


def _text_spellings(*texts: str) -> list[tuple[str, bytes]]:
    windows = [text[at : at + MARKER_LENGTH] for text in texts for at in range(len(text) - MARKER_LENGTH + 1)]
    return [spelling for window in windows for spelling in spellings_of_text(window)]


def _searched(recorder: Recorder) -> bytes:
    """Return the bytes as they were sent, and the headers again, which HTTP/2 compresses."""
    calls = [call for sent in recorder.upward for call in calls_in(bytes(sent))]
    headers = "\n".join(f"{name}: {value}" for call in calls for name, value in call.headers)
    return b"".join([*(bytes(sent) for sent in recorder.upward), headers.encode()])
