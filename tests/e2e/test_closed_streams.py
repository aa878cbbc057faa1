"""A client that leaves frees both sides."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from fakes.processes import ProcessMesh

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROMPT_LENGTH = 700


def body(model: Path, *, stream: bool) -> dict[str, Any]:
    prompt = list(range(100, 100 + PROMPT_LENGTH))
    return {"model": model.name, "prompt": prompt, "max_tokens": 600, "ignore_eos": True, "stream": stream}


async def leave_stream(http: httpx.AsyncClient, mesh: ProcessMesh, model: Path) -> None:
    async with http.stream("POST", f"{mesh.url}/v1/completions", json=body(model, stream=True)) as response:
        lines = response.aiter_lines()
        while "text" not in await anext(lines):
            pass


async def leave_wait(http: httpx.AsyncClient, mesh: ProcessMesh, model: Path) -> None:
    waiting = asyncio.create_task(http.post(f"{mesh.url}/v1/completions", json=body(model, stream=False)))
    before = (await mesh.state()).num_output_tokens
    async for state in mesh.client.watch_mesh(interval_s=0.01):
        if state.num_output_tokens > before:
            break
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


@pytest.mark.parametrize("leave", [leave_stream, leave_wait])
async def test_a_client_that_leaves_frees_both_sides(mesh: ProcessMesh, model: Path, leave: Any) -> None:
    """Less than a second after a connection was closed, all blocks are back and nothing runs; both ways to ask."""
    await mesh.serving_http()
    before = await mesh.free()
    async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
        await leave(http, mesh, model)
        begin_s = time.monotonic()
        after = await mesh.free()
        freed_s = time.monotonic() - begin_s
    print(f"{leave.__name__}: all blocks back after {freed_s * 1000:.0f} ms")
    assert freed_s < 1.0
    assert 0 < after.num_output_tokens - before.num_output_tokens < 300
    assert after.session == before.session
