"""The chat of the demo against a gateway, and its look at a mesh against a scheduler."""

from pathlib import Path

import pytest

from edgeweave.cli.chat import Chat
from edgeweave.cli.cloud_use import read_state
from edgeweave.client import Client
from edgeweave.errors import UnavailableError, UnitFailedError
from edgeweave.text import TextModel
from edgeweave.v1 import scheduler_pb2 as pb
from fakes.gateway import compose_gateway, serve_http
from fakes.scheduler import FakeScheduler, serve
from fakes.text_model import write_model_folder

TEXT = "Paris is the capital of France."


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model_folder(tmp_path_factory.mktemp("model"))


async def test_an_answer_has_text_and_times(model_folder: Path) -> None:
    """Pieces are shown when they come; their sum is the answer; tokens and times are those of the client."""
    tokens = (*TextModel.load(model_folder).encode(TEXT), 2)
    scheduler = FakeScheduler(script=lambda _: tokens)
    shown: list[str] = []
    async with (
        compose_gateway(model_folder, scheduler=scheduler) as gateway,
        serve_http(gateway) as url,
        Chat(url, max_tokens=50) as chat,
    ):
        answer = await chat.ask("Where?", on_text=shown.append)
    assert "".join(shown) == answer.text == TEXT
    assert len(shown) > 1
    assert answer.num_tokens == len(tokens)
    assert 0 < answer.first_s <= answer.last_s
    assert scheduler.requests[0].max_tokens == 50
    assert scheduler.requests[0].sampling.temperature == 0


async def test_an_answer_that_breaks_off_is_an_error(model_folder: Path) -> None:
    """Before or after the first text, what the gateway says of a failure is told."""
    tokens = TextModel.load(model_folder).encode(TEXT)
    scheduler = FakeScheduler(script=lambda _: tokens, error=UnitFailedError("no memory"), fail_at=0)
    async with (
        compose_gateway(model_folder, scheduler=scheduler) as gateway,
        serve_http(gateway) as url,
        Chat(url, max_tokens=50) as chat,
    ):
        with pytest.raises(UnavailableError, match=r"the gateway answers 500: .*no memory"):
            await chat.ask("Where?")
        scheduler.fail_at = len(tokens) - 1
        with pytest.raises(UnavailableError, match=r"the gateway broke off: .*no memory"):
            await chat.ask("Where?")


async def test_the_state_of_a_mesh_at_rest_is_read() -> None:
    """A mesh that does not come to rest because there is none is told at once, with its reason."""
    down = pb.WatchMeshResponse(state=pb.SESSION_STATE_DOWN, reason="the cloud is silent")
    scheduler = FakeScheduler(script=lambda _: (), mesh=down)
    async with serve(scheduler), Client(scheduler.target) as client:
        with pytest.raises(UnavailableError, match="the cloud is silent"):
            await read_state(client)
