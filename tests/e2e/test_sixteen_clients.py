"""The SDK of OpenAI against the gateway of a mesh of real processes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from edgeweave.text import TextModel
from fakes.processes import ProcessMesh
from models.served import answers_to

pytestmark = pytest.mark.asyncio(loop_scope="session")

NUM_TOKENS = 16
QUESTIONS = tuple(f"Question {number}: what is the capital of {'Fr' * number}ance?" for number in range(16))


def conversation(question: str) -> list[Any]:
    return [{"role": "user", "content": question}]


async def whole(openai: AsyncOpenAI, question: str, *, model: str) -> tuple[str | None, int]:
    answer = await openai.chat.completions.create(
        model=model, messages=conversation(question), max_tokens=NUM_TOKENS, temperature=0
    )
    assert answer.usage is not None
    return answer.choices[0].message.content, answer.usage.completion_tokens


async def streamed(openai: AsyncOpenAI, question: str, *, model: str) -> tuple[str | None, int]:
    chunks = await openai.chat.completions.create(
        model=model,
        messages=conversation(question),
        max_tokens=NUM_TOKENS,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    text, num_tokens = "", 0
    async for chunk in chunks:
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
        num_tokens = chunk.usage.completion_tokens if chunk.usage else num_tokens
    return text, num_tokens


def references(model: Path) -> list[str]:
    """Return the text of the whole model's answers, up to the end of an answer."""
    text_model = TextModel.load(model)
    prompts = [text_model.encode_chat(conversation(question)) for question in QUESTIONS]
    texts = []
    for answer in answers_to(model, prompts, num_tokens=NUM_TOKENS):
        end = next((i for i, token in enumerate(answer) if token in text_model.stop_token_ids), NUM_TOKENS)
        stream = text_model.stream()
        texts.append(stream.push(answer[:end]).text + stream.finish().text)
    return texts


async def test_sixteen_at_once(mesh: ProcessMesh, model: Path, openai: AsyncOpenAI) -> None:
    """Sixteen different questions at once, streaming and not, each get the answer of their own single run.

    And that is the answer of the whole model.
    """
    await mesh.serving_http()
    alone = [await whole(openai, question, model=model.name) for question in QUESTIONS]
    at_once = await asyncio.gather(*(whole(openai, question, model=model.name) for question in QUESTIONS))
    streams = await asyncio.gather(*(streamed(openai, question, model=model.name) for question in QUESTIONS))
    assert at_once == alone
    assert streams == alone
    assert [text for text, _ in alone] == references(model)
