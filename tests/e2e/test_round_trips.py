"""One round trip of the link is all that a token waits for.

By default the tests see that there is no second one, which holds on any machine. The bounds in milliseconds are for
a quiet one: `make test-timing`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from random import Random
from statistics import median

import pytest
import pytest_asyncio

from edgeweave.client import EngineState
from fakes.processes import ProcessMesh, process_mesh
from models.served import VOCAB_SIZE, wide_model

pytestmark = pytest.mark.asyncio(loop_scope="session")

RTT_MS = 98.0
"""10,000 km there and back."""
GBIT_PER_S = 10.0
TOKEN_BYTES = 5120
NO_SECOND_TRIP_MS = RTT_MS / 2
FIRST_TOKEN_MARGIN_MS = 20.0
CYCLE_MARGIN_MS = 5.0
NUM_TRIES = 4
NUM_LONG = 3
NUM_CYCLES = 10
LONG_PROMPT = 4096
SILENCE_S = 60
REPORT_S = 1.1
"""An idle engine reports once a second."""


@dataclass(frozen=True)
class Margins:
    """What may come on top of one round trip and compute, in ms."""

    first_token_ms: float
    cycle_ms: float


ANYWHERE = Margins(NO_SECOND_TRIP_MS, NO_SECOND_TRIP_MS)
QUIET = Margins(FIRST_TOKEN_MARGIN_MS, CYCLE_MARGIN_MS)
each_margin = pytest.mark.parametrize(
    "margins",
    [pytest.param(ANYWHERE, id="anywhere"), pytest.param(QUIET, id="quiet", marks=pytest.mark.timing)],
)


@dataclass(frozen=True)
class Times:
    """Of one request, in ms: until its first token, of the median decode cycle, and what engines computed in all."""

    first_token_ms: float
    cycle_ms: float
    computed_ms: float

    @property
    def beyond_ms(self) -> float:
        """What the first token took beyond one round trip and compute."""
        return self.first_token_ms - RTT_MS - self.computed_ms


def prompt_of(length: int) -> list[int]:
    draw = Random(length)  # noqa: S311 - numbers of a test
    return [draw.randrange(3, VOCAB_SIZE) for _ in range(length)]


def reported_s(engine: EngineState) -> float:
    """Return the time of this session that an engine has reported on."""
    return (engine.busy_us + sum(engine.bubbles_us.values()) + engine.idle_us) / 1e6


async def computed_ms(mesh: ProcessMesh, *, until_s: float) -> tuple[float, float]:
    """Return the time in which units ran, and how much of the session was reported, once that is `until_s`."""
    async for state in mesh.client.watch_mesh(interval_s=0.02):
        engines = [engine for engine in (state.edge, state.cloud) if engine is not None]
        if min(map(reported_s, engines)) >= until_s:
            return sum(engine.busy_us for engine in engines) / 1000, max(map(reported_s, engines))
    raise AssertionError("the scheduler ended the stream of states")


async def times_of(mesh: ProcessMesh, prompt: Sequence[int], *, num_cycles: int = 0) -> Times:
    """Send one request to an idle mesh."""
    before_ms, before_s = await computed_ms(mesh, until_s=0)
    begin_s = time.monotonic()
    at_s = [time.monotonic() async for _ in mesh.client.generate(prompt, max_tokens=1 + num_cycles)]
    elapsed_s = time.monotonic() - begin_s
    after_ms, _ = await computed_ms(mesh, until_s=before_s + elapsed_s + REPORT_S)
    cycle_s = median([later - earlier for earlier, later in pairwise(at_s)] or [0])
    return Times((at_s[0] - begin_s) * 1000, cycle_s * 1000, after_ms - before_ms)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def far(mesh: ProcessMesh) -> AsyncIterator[ProcessMesh]:
    """The mesh at 10,000 km."""
    async with mesh.replaced(link={"delay_ms": RTT_MS / 2}):
        yield mesh


@each_margin
async def test_a_first_token_and_a_cycle_take_one_round_trip(far: ProcessMesh, margins: Margins) -> None:
    """In an idle mesh, a first token and a decode cycle take one round trip, compute, and a margin.

    Other load of the machine adds to single times, so the best of several is compared.
    """
    first, cycles = [inf], [inf]
    while (min(first) > margins.first_token_ms or min(cycles) > margins.cycle_ms) and len(first) <= NUM_TRIES:
        alone = await times_of(far, prompt_of(16))
        longer = await times_of(far, prompt_of(16), num_cycles=NUM_CYCLES)
        first.append(alone.beyond_ms)
        cycles.append(longer.cycle_ms - RTT_MS - (longer.computed_ms - alone.computed_ms) / NUM_CYCLES)
        print(f"beyond one round trip and compute: first token {first[-1]:.1f} ms, cycle {cycles[-1]:.1f} ms; {longer}")
    assert min(first) < margins.first_token_ms
    assert min(cycles) < margins.cycle_ms


@pytest.mark.timing
@pytest.mark.timeout(400)
async def test_silence_makes_no_round_trip(far: ProcessMesh) -> None:
    """After 60 s without a request, the first token takes as long as otherwise."""
    beyond = []
    for _ in range(NUM_TRIES):
        await asyncio.sleep(SILENCE_S)
        beyond.append((await times_of(far, prompt_of(16))).beyond_ms)
        print(f"after {SILENCE_S} s of silence: {beyond[-1]:.1f} ms beyond one round trip and compute")
        if beyond[-1] < FIRST_TOKEN_MARGIN_MS:
            return
    raise AssertionError(f"{beyond} ms beyond one round trip and compute")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def wide() -> AsyncIterator[ProcessMesh]:
    """A mesh of its own at 10,000 km, with hidden states of 5120 bytes a token, and prompts of 20 MB in one chunk."""
    one_chunk = ("--chunk-tokens", "--max-prefill-tokens", "--max-seq-len")
    words = [word for flag in one_chunk for word in (flag, str(LONG_PROMPT))]
    scheduler = [*words, "--long-prompt-tokens", str(2 * LONG_PROMPT), "--num-segments", "1"]
    async with process_mesh(wide_model(), rtt_ms=RTT_MS, flags={"scheduler": scheduler}) as mesh:
        yield mesh


@each_margin
async def test_the_first_request_takes_one_round_trip(wide: ProcessMesh, margins: Margins) -> None:
    """Right after the start of all processes, and again right after the start of a session."""
    beyond = [(await times_of(wide, prompt_of(16))).beyond_ms]
    while beyond[-1] > margins.first_token_ms and len(beyond) < NUM_TRIES:
        session = (await wide.state()).session
        await wide.end("link")
        await wide["link"].start()
        await wide.serving(after=session)
        beyond.append((await times_of(wide, prompt_of(16))).beyond_ms)
    print(f"first requests: {beyond} ms beyond one round trip and compute")
    assert min(beyond) < margins.first_token_ms


@each_margin
async def test_a_chunk_of_20_mb_takes_one_round_trip_and_its_transfer(wide: ProcessMesh, margins: Margins) -> None:
    """A chunk of 20 MB takes one round trip, compute, a margin, and what the link needs to carry it there and back.

    Compute is what the same chunk takes where the cloud is next door, so that the work of moving 20 MB through the
    processes counts as well.
    """
    transfer_ms = 2 * (LONG_PROMPT - 1) * TOKEN_BYTES * 8 / (GBIT_PER_S * 1e6)
    most_ms = RTT_MS + margins.first_token_ms + transfer_ms
    far = [await first_token_ms(wide, LONG_PROMPT - 1) for _ in range(NUM_LONG)]
    async with wide.replaced(link={"delay_ms": 0.05}):
        near = [await first_token_ms(wide, LONG_PROMPT - 1) for _ in range(NUM_LONG)]
    tries = 0
    while min(far) - min(near) > most_ms and tries < NUM_TRIES:
        far.append(await first_token_ms(wide, LONG_PROMPT - 1))
        tries += 1
    print(f"first token of 20 MB: far {far} ms, near {near} ms, {min(far) - min(near):.1f} ms for {RTT_MS} ms of link")
    assert min(far) - min(near) < most_ms


async def first_token_ms(mesh: ProcessMesh, length: int) -> float:
    """Return how long the only token of an answer takes."""
    begin_s = time.monotonic()
    async for _ in mesh.client.generate(prompt_of(length), max_tokens=1):
        pass
    return (time.monotonic() - begin_s) * 1000
