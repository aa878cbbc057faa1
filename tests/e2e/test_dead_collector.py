"""A collector that is not there, or does not answer, costs spans and nothing else."""

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest
from openai import AsyncOpenAI

from fakes.processes import ProcessMesh

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROMPTS = ("one two", "three four five", "six", "seven eight")
STOP_S = 10.0
"""What an operator's `docker stop` or systemd gives at least; no collector may make us need more."""


@pytest.fixture(params=["dead", "deaf"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where nobody listens, or where connections are taken and nothing is ever said."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        if request.param == "deaf":
            bound.listen()
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


async def answers(mesh: ProcessMesh) -> list[str]:
    """Return the answers to all prompts, asked at once."""
    async with AsyncOpenAI(base_url=f"{mesh.url}/v1", api_key="unused", max_retries=0) as openai:
        model = (await openai.models.list()).data[0].id
        asked = [
            openai.completions.create(model=model, prompt=prompt, max_tokens=12, temperature=0.0) for prompt in PROMPTS
        ]
        return [answer.choices[0].text for answer in await asyncio.gather(*asked)]


async def test_serving_goes_on_and_ends_in_time(mesh: ProcessMesh, endpoint: str) -> None:
    """The same answers, and an orderly end though there are spans that nobody takes."""
    wanted = await answers(mesh)
    traced = {"otlp_endpoint": endpoint}
    async with mesh.replaced(scheduler=traced, gateway=traced):
        await mesh.serving_http()
        for _ in range(3):
            assert await answers(mesh) == wanted
        begin_s = time.monotonic()
    took_s = time.monotonic() - begin_s  # ended with exit code 0, and others in their place serve
    await mesh.serving_http()
    assert took_s < STOP_S
