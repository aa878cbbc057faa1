"""Tokens of a mesh of real processes over the link emulator are those of the whole model."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from edgeweave import Client
from edgeweave.interleave.nouns import PlanKind
from edgeweave.text import TextModel
from fakes.processes import ProcessMesh
from models.served import VOCAB_SIZE, answers_to

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLANS = (PlanKind.SERIAL, PlanKind.ONE_P_ONE_D, PlanKind.TWO_P_ONE_D)
NUM_TOKENS = 12
_LENGTHS = (23, 7, 70, 1, 40, 12)


@dataclass(frozen=True)
class Shape:
    """What a mesh is run with."""

    chunk_tokens: int
    rtt_ms: float


SHAPES = (Shape(chunk_tokens=512, rtt_ms=2), Shape(chunk_tokens=5, rtt_ms=0.5), Shape(chunk_tokens=16, rtt_ms=10))


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=SHAPES, ids=str)
async def shaped(request: pytest.FixtureRequest, mesh: ProcessMesh) -> AsyncIterator[ProcessMesh]:
    """The mesh with another chunk size and distance."""
    shape: Shape = request.param
    if shape is SHAPES[0]:
        yield mesh
        return
    async with mesh.replaced(
        link={"delay_ms": shape.rtt_ms / 2},
        scheduler={"chunk_tokens": shape.chunk_tokens, "long_prompt_tokens": 48, "max_batch_size": 4},
    ):
        await mesh.serving_http()
        yield mesh


def prompts_of(seed: int) -> list[list[int]]:
    draw = Random(seed)  # noqa: S311 - numbers of a test
    return [[draw.randrange(3, VOCAB_SIZE) for _ in range(length)] for length in _LENGTHS]


async def tokens_of(client: Client, prompt: Sequence[int], *, num_tokens: int = NUM_TOKENS) -> tuple[int, ...]:
    deltas = client.generate(prompt, max_tokens=num_tokens)
    return tuple([token async for delta in deltas for token in delta.token_ids])


async def text_of(openai: AsyncOpenAI, prompt: Sequence[int], *, model: str, stream: bool) -> str:
    parameters: dict[str, Any] = {"model": model, "prompt": list(prompt), "max_tokens": NUM_TOKENS, "temperature": 0}
    parameters["extra_body"] = {"ignore_eos": True}
    if not stream:
        return str((await openai.completions.create(**parameters)).choices[0].text)
    pieces = await openai.completions.create(**parameters, stream=True)
    return "".join([piece.choices[0].text async for piece in pieces])


def expected_text(text_model: TextModel, prompt: Sequence[int], answer: tuple[int, ...]) -> str:
    stream = text_model.stream(context_token_ids=prompt)
    return stream.push(answer).text + stream.finish().text


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name.lower())
async def test_tokens_equal_the_references(
    shaped: ProcessMesh, plan: PlanKind, model: Path, openai: AsyncOpenAI
) -> None:
    """Six prompts at once, by the SDK and again by HTTP, streaming and not, are answered as by the whole model."""
    prompts = prompts_of(plan)
    answers = answers_to(model, prompts, num_tokens=NUM_TOKENS)
    await shaped.client.set_plan(plan)
    assert await asyncio.gather(*(tokens_of(shaped.client, prompt) for prompt in prompts)) == answers
    text_model = TextModel.load(model)
    texts = await asyncio.gather(
        *(text_of(openai, prompt, model=model.name, stream=bool(number % 2)) for number, prompt in enumerate(prompts))
    )
    assert texts == [expected_text(text_model, *pair) for pair in zip(prompts, answers, strict=True)]
    assert (await shaped.state()).num_departures == 0


async def test_plans_change_under_load(mesh: ProcessMesh, model: Path) -> None:
    """While twelve answers stream, every plan takes its turn, with one step or two away; no token changes by it."""
    prompts = [*prompts_of(7), *prompts_of(8)]
    answers = asyncio.gather(*(tokens_of(mesh.client, prompt, num_tokens=40) for prompt in prompts))
    num_changes = 0
    while not answers.done():
        kind = PLANS[num_changes % 3]
        num_steps = 1 if kind is PlanKind.SERIAL else 1 + num_changes % 2
        plan = await mesh.client.set_plan(kind, max_steps=num_steps)
        assert (plan.kind, plan.max_steps) == (kind, num_steps)
        num_changes += 1
        await asyncio.sleep(0.03)
    assert await answers == answers_to(model, prompts, num_tokens=40)
    assert num_changes > 6
    await mesh.client.set_plan(PlanKind.TWO_P_ONE_D)
    assert (await mesh.state()).num_departures == 0
