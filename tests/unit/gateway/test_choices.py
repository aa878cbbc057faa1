"""What a request asks the scheduler for."""

from dataclasses import replace
from typing import Any

import pytest

from edgeweave.errors import PromptTooLongError
from edgeweave.text import TextModel
from edgeweave_gateway.choices import ChoiceMaker, Choices
from edgeweave_gateway.requests import ChatRequest, CompletionRequest
from fakes.text_model import write_model_folder

DRAWN = 77


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    return TextModel.load(write_model_folder(tmp_path_factory.mktemp("model")))


def complete(model: TextModel, *, max_seq_len: int | None = None, **parameters: Any) -> Choices:
    request = CompletionRequest.model_validate({"model": "m", "prompt": [5, 6, 7], **parameters})
    return ChoiceMaker(model, random_seed=lambda: DRAWN).for_completion(request, max_seq_len=max_seq_len)


def chat(model: TextModel, *, max_seq_len: int | None = None, **parameters: Any) -> Choices:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], **parameters}
    request = ChatRequest.model_validate(body)
    return ChoiceMaker(model, random_seed=lambda: DRAWN).for_chat(request, max_seq_len=max_seq_len)


@pytest.mark.parametrize(
    ("asked", "limits", "granted"),
    [
        (None, (512, None), 16),
        (None, (10, None), 7),
        (None, (512, 5), 2),
        (9, (512, 100), 9),
        (7, (10, None), 7),
        (600, (None, None), 600),
        (None, (None, None), 16),
    ],
)
def test_room(model: TextModel, asked: int | None, limits: tuple[int | None, int | None], granted: int) -> None:
    """The default gives way to the room that is left; what was asked for is granted or refused."""
    limited = replace(model, max_positions=limits[0])
    assert complete(limited, max_tokens=asked, max_seq_len=limits[1]).choices[0].max_tokens == granted


@pytest.mark.parametrize(("asked", "limits"), [(8, (10, None)), (None, (3, None)), (3, (512, 5)), (None, (512, 2))])
def test_no_room(model: TextModel, asked: int | None, limits: tuple[int | None, int | None]) -> None:
    """What does not fit is refused with the smaller limit and the length of the prompt."""
    with pytest.raises(PromptTooLongError, match=rf"room for {min(filter(None, limits))} .* has 3"):
        complete(replace(model, max_positions=limits[0]), max_tokens=asked, max_seq_len=limits[1])


def test_chat_without_any_limit(model: TextModel) -> None:
    """Where nobody names a limit, a chat answer has one all the same."""
    assert chat(replace(model, max_positions=None)).choices[0].max_tokens == 1024


def test_seeds(model: TextModel) -> None:
    """Output 0 has the seed of the request, the others seeds derived from it, the same for every prompt."""
    one = [choice.sampling.seed for choice in complete(model, seed=9, n=4).choices]
    two = [choice.sampling.seed for choice in complete(model, seed=9, n=4, prompt=[[5], [6]]).choices]
    assert one[0] == 9
    assert len(set(one)) == 4
    assert two == one + one
    assert all(0 <= seed < 2**64 for seed in one)
    assert complete(model, seed=-1).choices[0].sampling.seed == 2**64 - 1


def test_drawn_seed(model: TextModel) -> None:
    """A request without a seed draws one, unless it is greedy."""
    assert complete(model).choices[0].sampling.seed == DRAWN
    assert complete(model, temperature=0).choices[0].sampling.seed == 0


def test_ends(model: TextModel) -> None:
    """The model's end of text ends an output unless it is to be ignored; the client's tokens always do."""
    assert chat(model, stop_token_ids=[9]).stop_token_ids == {9, *model.stop_token_ids}
    assert chat(model, stop_token_ids=[9], ignore_eos=True).stop_token_ids == {9}


def test_context(model: TextModel) -> None:
    """A completion goes on from its prompt; a chat answer stands alone."""
    assert complete(model).choices[0].context_token_ids == (5, 6, 7)
    assert chat(model).choices[0].context_token_ids == ()


def test_prompt_tokens_count_once(model: TextModel) -> None:
    """A prompt with several outputs counts once."""
    assert complete(model, n=3, prompt=[[5, 6], [7]]).num_prompt_tokens == 3
