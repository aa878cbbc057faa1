"""A gateway with a fresh scheduler behind it, real HTTP for it, and an OpenAI client."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from edgeweave.text import TextModel
from fakes.gateway import FakeGateway, compose_gateway, serve_http
from fakes.scheduler import FakeScheduler, Request
from fakes.text_model import write_model_folder

ANSWER = "Paris is the capital of France."


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture
async def gateway(model_folder: Path) -> AsyncIterator[FakeGateway]:
    model = TextModel.load(model_folder)

    def script(request: Request) -> tuple[int, ...]:
        """Answer each prompt with a text of its own, and end it."""
        return (*model.encode(f"{ANSWER} {sum(request.prompt_token_ids)}"), 2)

    async with compose_gateway(model_folder, scheduler=FakeScheduler(script=script)) as composed:
        yield composed


@pytest.fixture
async def url(gateway: FakeGateway) -> AsyncIterator[str]:
    async with serve_http(gateway) as served:
        yield served


@pytest.fixture
async def openai(url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=20) as client:
        yield client
