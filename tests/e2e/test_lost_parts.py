"""Parts of a mesh end, are killed and come back, one by one."""

import asyncio
import json
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import httpx
import pytest

from edgeweave.errors import UnavailableError
from fakes.process_table import children_of
from fakes.processes import ProcessMesh, addresses_of, assert_free
from models.served import answers_to

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROMPT = tuple(range(40, 60))
NUM_TOKENS = 12
TOLD_WITHIN_S = 5.0
LONG = 300


def body(model: Path, *, stream: bool, num_tokens: int = LONG) -> dict[str, Any]:
    return {"model": model.name, "prompt": PROMPT, "max_tokens": num_tokens, "ignore_eos": True, "stream": stream}


async def serves_exactly(mesh: ProcessMesh, model: Path) -> None:
    """Check an answer by the SDK and one by HTTP."""
    deltas = mesh.client.generate(PROMPT, max_tokens=NUM_TOKENS)
    tokens = tuple([token async for delta in deltas for token in delta.token_ids])
    assert [tokens] == answers_to(model, [PROMPT], num_tokens=NUM_TOKENS)
    async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
        response = await http.post(f"{mesh.url}/v1/completions", json=body(model, stream=False, num_tokens=3))
    assert response.status_code == 200, response.text
    await mesh.free()


@pytest.mark.parametrize("name", ["gateway", "scheduler", "link", "edge", "cloud"])
async def test_a_part_ends_well_and_comes_back(mesh: ProcessMesh, model: Path, name: str) -> None:
    """SIGTERM is no failure: exit code 0, no child, a free port; started again as before, the mesh serves by itself."""
    session = (await mesh.state()).session
    pid = mesh[name].pid
    addresses, children = addresses_of(pid), children_of(pid)
    await mesh.end(name)
    assert_free(addresses)
    assert children == []
    await mesh[name].start()
    await mesh.serving_http(after=0 if name == "gateway" else session)
    await serves_exactly(mesh, model)


class Clients:
    """Three clients in the middle of long answers: of the SDK, of a stream of events, and of a whole answer."""

    def __init__(self, mesh: ProcessMesh, model: Path) -> None:
        self._mesh = mesh
        self._model = model
        self._is_answered = [asyncio.Event(), asyncio.Event()]
        self.sdk = asyncio.create_task(self._sdk())
        self.events = asyncio.create_task(self._events())
        self.whole = asyncio.create_task(self._whole())

    async def answered(self) -> None:
        """Wait until both streams have begun."""
        for event in self._is_answered:
            await asyncio.wait_for(event.wait(), 10)

    async def _sdk(self) -> None:
        async for _ in self._mesh.client.generate(PROMPT, max_tokens=LONG):
            self._is_answered[0].set()

    async def _events(self) -> list[str]:
        lines: list[str] = []
        async with (
            httpx.AsyncClient(trust_env=False, timeout=20) as http,
            http.stream("POST", f"{self._mesh.url}/v1/completions", json=body(self._model, stream=True)) as response,
        ):
            async for line in response.aiter_lines():
                self._is_answered[1].set()
                lines.append(line)
        return [line for line in lines if line]

    async def _whole(self) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
            return await http.post(f"{self._mesh.url}/v1/completions", json=body(self._model, stream=False))


@pytest.mark.parametrize("name", ["link", "scheduler", "edge", "cloud"])
async def test_a_killed_part_is_told_to_every_client(mesh: ProcessMesh, model: Path, name: str) -> None:
    """Within 5 s the SDK raises, a stream of events ends with an error of 503, and a whole answer is a 503.

    Started again with the same command, the part is found by the others, and the mesh serves exactly.
    """
    await mesh.serving_http()
    session = (await mesh.state()).session
    clients = Clients(mesh, model)
    await clients.answered()
    begin_s = time.monotonic()
    await mesh.kill(name)
    with pytest.raises(UnavailableError) as sdk:
        await clients.sdk
    *_, kind, told = await clients.events
    whole = await clients.whole
    told_s = time.monotonic() - begin_s
    print(f"{name}: told after {told_s:.2f} s: {sdk.value}")
    assert told_s < TOLD_WITHIN_S
    assert kind == "event: error"
    error = json.loads(told.removeprefix("data: "))["error"]
    assert error["type"] == "service_unavailable"
    assert "\n" not in error["message"]
    assert whole.status_code == 503
    assert whole.json()["error"]["type"] == "service_unavailable"
    await mesh[name].start()
    await mesh.serving_http(after=session)
    await serves_exactly(mesh, model)


async def test_a_killed_gateway_frees_what_it_asked_for(mesh: ProcessMesh, model: Path) -> None:
    """The scheduler sees that its client is gone and frees both sides at once; a new gateway serves."""
    await mesh.serving_http()
    clients = Clients(mesh, model)
    await clients.answered()
    await mesh.kill("gateway")
    for waiting in (clients.events, clients.whole):
        with pytest.raises(httpx.HTTPError):
            await _result(waiting)
    clients.sdk.cancel()
    await asyncio.gather(clients.sdk, return_exceptions=True)
    begin_s = time.monotonic()
    await mesh.free()
    assert time.monotonic() - begin_s < 1.0
    await mesh["gateway"].start()
    await mesh.serving_http()
    await serves_exactly(mesh, model)


async def _result(waiting: Awaitable[object]) -> object:
    return await asyncio.wait_for(waiting, TOLD_WITHIN_S)
