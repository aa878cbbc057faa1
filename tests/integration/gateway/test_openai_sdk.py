"""The OpenAI SDK against the gateway."""

import asyncio
from typing import Any

from openai import AsyncOpenAI

from fakes.gateway import DRAWN_SEED, MODEL, NOW_S, FakeGateway

QUESTION: list[Any] = [{"role": "user", "content": "The capital of France?"}]


async def streamed_chat(openai: AsyncOpenAI, **parameters: Any) -> list[Any]:
    stream = await openai.chat.completions.create(**{"model": MODEL, "messages": QUESTION, **parameters}, stream=True)
    return [chunk async for chunk in stream]


async def test_chat(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """A whole answer has text, reason, usage, id and time."""
    answer = await openai.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0)
    request = gateway.scheduler.requests[0]
    prompt = gateway.model.encode_chat(QUESTION)
    text = f"Paris is the capital of France. {sum(prompt)}"
    assert answer.choices[0].message.content == text
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.model, answer.created, answer.object) == (MODEL, NOW_S, "chat.completion")
    assert answer.id.startswith("chatcmpl-")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(prompt)
    assert answer.usage.completion_tokens == len(gateway.model.encode(text)) + 1
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert tuple(request.prompt_token_ids) == prompt
    assert request.request_id == f"{answer.id}-0"
    assert set(request.stop_token_ids) == gateway.model.stop_token_ids


async def test_streamed_chat(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """A stream opens with the role, gives the text, and ends with the reason; all bodies have one id."""
    chunks = await streamed_chat(openai)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == f"Paris is the capital of France. {sum(gateway.model.encode_chat(QUESTION))}"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert len(chunks) > 5
    assert all("usage" not in chunk.model_fields_set for chunk in chunks)


async def test_streamed_usage(openai: AsyncOpenAI) -> None:
    """With `include_usage` the last body has the usage and no choice; the others name none."""
    chunks = await streamed_chat(openai, stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == chunks[-1].usage.prompt_tokens + chunks[-1].usage.completion_tokens
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_sixteen_at_once(openai: AsyncOpenAI) -> None:
    """Sixteen prompts at once, streaming and not, each get the answer of their own single run."""
    prompts = [[{"role": "user", "content": f"Question {'x' * number}?"}] for number in range(16)]

    async def whole(messages: Any) -> str | None:
        answer = await openai.chat.completions.create(model=MODEL, messages=messages)
        return answer.choices[0].message.content

    async def streamed(messages: Any) -> str:
        chunks = await streamed_chat(openai, messages=messages)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    single = [await whole(messages) for messages in prompts]
    assert len(set(single)) == 16
    assert await asyncio.gather(*map(whole, prompts)) == single
    assert await asyncio.gather(*map(streamed, prompts)) == single


async def test_completion(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """A plain completion has at most 16 tokens unless asked for more, and keeps the space after the prompt."""
    gateway.scheduler.script = lambda _: gateway.model.encode(" is Paris" * 20)
    answer = await openai.completions.create(model=MODEL, prompt="The capital of France", echo=True)
    assert answer.choices[0].text.startswith("The capital of France is Paris is")
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16
    assert answer.id.startswith("cmpl-")


async def test_streamed_completion(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """A streamed completion gives the same text in pieces, the echo before it."""
    gateway.scheduler.script = lambda _: gateway.model.encode(" is Paris")
    stream = await openai.completions.create(
        model=MODEL, prompt="It", echo=True, stream=True, max_tokens=50, extra_body={"ignore_eos": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].text for chunk in chunks) == "It is Paris"
    assert chunks[-1].choices[0].finish_reason == "length"
    assert list(gateway.scheduler.requests[0].stop_token_ids) == []


async def test_prompts_in_all_forms(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """A prompt is text or token ids, one or several; each gives a choice for each of `n`, in order."""
    ids = [list(gateway.model.encode(text)) for text in ("a b", "c d e")]
    for prompt in ("a b", ["a b", "c d e"], ids[0], ids):
        gateway.scheduler.requests.clear()
        answer = await openai.completions.create(model=MODEL, prompt=prompt, n=2, max_tokens=99)
        expected = ids if prompt in (ids, ["a b", "c d e"]) else ids[:1]
        assert [choice.index for choice in answer.choices] == list(range(2 * len(expected)))
        asked = sorted(list(request.prompt_token_ids) for request in gateway.scheduler.requests)
        assert asked == sorted([*expected, *expected])
        for choice in answer.choices:
            assert choice.text.endswith(f" {sum(expected[choice.index // 2])}")
        assert answer.usage is not None
        assert answer.usage.prompt_tokens == sum(map(len, expected))


async def test_several_streamed_choices(openai: AsyncOpenAI) -> None:
    """The pieces of several outputs come mixed, each with its index, each with its own end."""
    chunks = await streamed_chat(openai, n=3, stream_options={"include_usage": True})
    texts = dict.fromkeys(range(3), "")
    ends = []
    for chunk in chunks[:-1]:
        choice = chunk.choices[0]
        texts[choice.index] += choice.delta.content or ""
        ends += [choice.index] if choice.finish_reason else []
    assert len(set(texts.values())) == 1
    assert sorted(ends) == [0, 1, 2]
    whole = await openai.chat.completions.create(model=MODEL, messages=QUESTION, n=3)
    assert chunks[-1].usage == whole.usage


async def test_sampling(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """Sampling reaches the scheduler; the outputs of `n` have seeds of their own, the same ones every time."""
    for _ in range(2):
        await openai.chat.completions.create(
            model=MODEL, messages=QUESTION, n=2, seed=-1, temperature=0.5, top_p=0.25, extra_body={"top_k": 7}
        )
    samplings = [request.sampling for request in gateway.scheduler.requests]
    assert {(each.temperature, each.top_p, each.top_k) for each in samplings} == {(0.5, 0.25, 7)}
    seeds = [each.seed for each in samplings]
    assert sorted(seeds[:2]) == sorted(seeds[2:])
    assert 2**64 - 1 in seeds[:2]
    assert len(set(seeds)) == 2


async def test_sampling_defaults(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """Without sampling values the temperature is 1 and a seed is drawn; a greedy request needs none."""
    await openai.chat.completions.create(model=MODEL, messages=QUESTION)
    await openai.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0)
    drawn, greedy = (request.sampling for request in gateway.scheduler.requests)
    assert (drawn.temperature, drawn.top_p, drawn.top_k, drawn.seed) == (1.0, 1.0, 0, DRAWN_SEED)
    assert (greedy.temperature, greedy.seed) == (0.0, 0)


async def test_stop_strings(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """A stop string over several tokens never shows, streaming or not, and usage counts what was computed."""
    stop = [" capital of", "never"]
    whole = await openai.chat.completions.create(model=MODEL, messages=QUESTION, stop=stop)
    streamed = await streamed_chat(openai, stop=stop)
    pieces = [chunk.choices[0].delta.content or "" for chunk in streamed]
    assert whole.choices[0].message.content == "".join(pieces) == "Paris is the"
    assert streamed[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert whole.usage.completion_tokens == len(gateway.model.encode("Paris is the capital of"))


async def test_stop_token_ids(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """A stop token of the client ends the output, too, and is not shown."""
    token_id = gateway.model.encode("Paris is")[-1]
    answer = await openai.chat.completions.create(
        model=MODEL, messages=QUESTION, extra_body={"stop_token_ids": [token_id]}
    )
    text = answer.choices[0].message.content or ""
    assert gateway.model.encode(text) == gateway.model.encode("Paris is")[:-1]
    assert set(gateway.scheduler.requests[0].stop_token_ids) == {token_id, *gateway.model.stop_token_ids}


async def test_roles_and_parts(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """Messages of every role are rendered; parts of text become one text, `developer` is `system`."""
    messages: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c", "refusal": None},
        {"role": "tool", "content": "d", "tool_call_id": "t"},
    ]
    await openai.chat.completions.create(model=MODEL, messages=messages)
    plain = [("system", "Be brief."), ("user", "a\nb"), ("assistant", "c"), ("tool", "d")]
    expected = gateway.model.encode_chat([{"role": role, "content": content} for role, content in plain])
    assert tuple(gateway.scheduler.requests[0].prompt_token_ids) == expected


async def test_max_tokens(openai: AsyncOpenAI, gateway: FakeGateway) -> None:
    """Both names of the limit work, the newer one wins; without one a chat may fill the model's room."""
    for limits in ({"max_tokens": 3}, {"max_completion_tokens": 4, "max_tokens": 3}, {}):
        await openai.chat.completions.create(model=MODEL, messages=QUESTION, **limits)  # type: ignore[call-overload]  # three calls in one
    asked = [request.max_tokens for request in gateway.scheduler.requests]
    assert asked == [3, 4, 512 - len(gateway.model.encode_chat(QUESTION))]


async def test_models(openai: AsyncOpenAI) -> None:
    """The one model is listed and described."""
    models = [model async for model in openai.models.list()]
    assert [model.id for model in models] == [MODEL]
    assert (await openai.models.retrieve(MODEL)).owned_by == "edgeweave"
