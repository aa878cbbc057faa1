"""A mesh of real processes with emulated engines: the real protocol and bytes, and tokens that prove what they did."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from edgeweave import Client
from edgeweave.cli.mesh import Mesh
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.emulated import reference_tokens
from edgeweave.interleave.nouns import PlanKind
from edgeweave.sim.profile import NPU
from edgeweave.telemetry import SpanName
from edgeweave.tracing.span import Origin
from weaving.use import state_at_rest

pytestmark = pytest.mark.asyncio(loop_scope="session")

NUM_TOKENS = 12
DISTANCE_KM = 1000.0
SCHEDULER_FLAGS = ("--chunk-tokens", "96", "--max-prefill-tokens", "192")
LONG_CHUNKS = ("--chunk-tokens", "512", "--max-prefill-tokens", "512")
NEAR_ZERO = 0.06
MOST_TRIES = 10


def prompts(num_prompts: int, *, seed: int) -> list[list[int]]:
    rng = random.Random(seed)  # noqa: S311 - prompts, no secrets
    return [[rng.randrange(1 << 17) for _ in range(rng.randint(16, 256))] for _ in range(num_prompts)]


async def answer(client: Client, prompt: Sequence[int]) -> list[int]:
    deltas = client.generate(prompt, max_tokens=NUM_TOKENS)
    return [token_id async for delta in deltas for token_id in delta.token_ids]


def reference(prompt: Sequence[int]) -> list[int]:
    return reference_tokens(prompt, NUM_TOKENS, num_layers=NPU.num_layers)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client() -> AsyncIterator[Client]:
    """A client of a mesh of the NPU profile at 1,000 km."""
    options = MeshOptions(emulate="npu", distance_km=DISTANCE_KM, extra_flags={"scheduler": SCHEDULER_FLAGS})
    async with Mesh.start(options) as mesh, Client(mesh.scheduler_address) as client:
        assert sorted(mesh.processes) == ["cloud", "edge", "link", "scheduler"]
        with pytest.raises(RuntimeError, match="without a gateway"):
            _ = mesh.url
        yield client


@pytest.mark.parametrize("kind", [PlanKind.TWO_P_ONE_D, PlanKind.ADAPTIVE])
async def test_twelve_requests_at_once_get_their_tokens(client: Client, kind: PlanKind) -> None:
    """Chunks, segments, steps and the link change nothing of what each prompt gives alone; the cloud saw real bytes."""
    await client.set_plan(kind)
    asked = prompts(12, seed=kind)
    answers = await asyncio.gather(*(answer(client, prompt) for prompt in asked))
    assert answers == [reference(prompt) for prompt in asked]
    async for state in client.watch_mesh(interval_s=0.02):
        assert state.cloud is not None
        if state.num_running or state.cloud.received_bytes < sum(map(len, asked)) * NPU.token_bytes:
            continue
        assert state.rtt_us > 2 * DISTANCE_KM * 4.9
        assert state.num_departures == 0
        break


async def test_one_place_gives_the_same_tokens() -> None:
    """Centralized, the edge engine is the whole model: no cloud, no lane, the same reference."""
    options = MeshOptions(emulate="npu", is_centralized=True)
    (prompt,) = prompts(1, seed=1)
    async with Mesh.start(options) as mesh, Client(mesh.scheduler_address) as client:
        assert await answer(client, prompt) == reference(prompt)


async def cloud_bubble_share(client: Client, kind: PlanKind, num_prompts: int) -> float:
    """Serve long prompts, all asked for at once; return the share of bubbles between first and last segment."""
    await client.set_plan(kind)
    await state_at_rest(client)  # the last report of what came before is here
    before = [batch.next async for batch in client.read_timelines(last_s=0.001)][-1]
    rng = random.Random(num_prompts)  # noqa: S311 - prompts, no secrets
    asked = [[rng.randrange(1 << 17) for _ in range(rng.randint(384, 512))] for _ in range(num_prompts)]
    await asyncio.gather(*(answer(client, prompt) for prompt in asked))
    await state_at_rest(client)
    batches = [batch async for batch in client.read_timelines(after=before)]
    cloud = [span for batch in batches for span in batch.spans if span.origin is Origin.CLOUD]
    segments = [span for span in cloud if span.name == SpanName.SEGMENT]
    begin_us, end_us = min(span.begin_us for span in segments), max(span.end_us for span in segments)
    bubbles = [span for span in cloud if span.name == SpanName.BUBBLE and begin_us <= span.begin_us < end_us]
    return sum(span.length_us for span in bubbles) / (end_us - begin_us)


@pytest.mark.timeout(180)
async def test_under_load_two_chunks_in_flight_leave_the_cloud_hardly_a_bubble() -> None:
    """From spans alone: the cloud runs, though the link takes 10 ms a trip; in serial mode it waits for each.

    Whatever else takes the cores of this machine only adds bubbles, so the best of some tries is what the plan gives.
    """
    options = MeshOptions(emulate="npu", distance_km=DISTANCE_KM, extra_flags={"scheduler": LONG_CHUNKS})
    async with Mesh.start(options) as mesh, Client(mesh.scheduler_address) as client:
        serial = await cloud_bubble_share(client, PlanKind.SERIAL, 10)
        woven: list[float] = []
        while len(woven) < MOST_TRIES and min(woven, default=1.0) >= NEAR_ZERO:
            woven.append(await cloud_bubble_share(client, PlanKind.TWO_P_ONE_D, 40))
    shares = ", ".join(f"{share:.1%}" for share in woven)
    print(f"bubbles of the cloud under load: {shares} with 2p1d, {serial:.1%} in serial mode")
    assert min(woven) < NEAR_ZERO
    assert min(woven) < serial / 5
