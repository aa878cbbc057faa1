"""Every error in the shape of the OpenAI API, with the right status."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai as openai_sdk
import pytest
from openai import AsyncOpenAI

from edgeweave.errors import (
    DeadlineError,
    EdgeweaveError,
    MismatchError,
    OverloadedError,
    PromptTooLongError,
    SessionLostError,
    UnitFailedError,
)
from fakes.gateway import MODEL, FakeGateway, compose_gateway, serve_http
from fakes.scheduler import FakeScheduler

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
COMPLETION: dict[str, Any] = {"model": MODEL, "prompt": "hello"}


def without_network(gateway: FakeGateway) -> httpx.AsyncClient:
    """Return a client that calls the application itself: what is refused needs no connection."""
    transport = httpx.ASGITransport(gateway.app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=20)


@pytest.fixture
async def http(gateway: FakeGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with without_network(gateway) as client:
        yield client


def error_in(response: httpx.Response) -> dict[str, Any]:
    """Return the error of an answer, which has just the four fields of the API."""
    body = response.json()
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"message", "type", "param", "code"}
    assert "\n" not in body["error"]["message"]
    return dict(body["error"])


BAD_CHATS: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": []}, "messages", "at least 1 item"),
    ({"messages": "hello"}, "messages", "valid list"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "'system'"),
    ({"messages": [{"role": "user"}]}, "messages[0]", "has no content"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "messages[0].content",
        "parts of type text",
    ),
    ({"temperature": -0.1}, "temperature", "greater than or equal to 0"),
    ({"temperature": 2.1}, "temperature", "less than or equal to 2"),
    ({"temperature": "hot"}, "temperature", "valid number"),
    ({"top_p": 0}, "top_p", "greater than 0"),
    ({"top_p": 1.1}, "top_p", "less than or equal to 1"),
    ({"top_k": -2}, "top_k", "greater than or equal to -1"),
    ({"seed": 2**64}, "seed", "less than"),
    ({"seed": 1.5}, "seed", "integer"),
    ({"n": 0}, "n", "greater than or equal to 1"),
    ({"n": 129}, "n", "less than or equal to 128"),
    ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
    ({"max_completion_tokens": -5}, "max_completion_tokens", "greater than or equal to 1"),
    ({"stop": ["a", ""]}, "stop", "none of them empty"),
    ({"stop": [str(number) for number in range(17)]}, "stop", "at most 16"),
    ({"stop": 5}, "stop", "string or a list of strings"),
    ({"stop_token_ids": [-1]}, "stop_token_ids[0]", "greater than or equal to 0"),
    ({"logprobs": True}, "logprobs", "not offered"),
    ({"top_logprobs": 2}, "top_logprobs", "not offered"),
    ({"tools": [{"type": "function"}]}, "tools", "not offered"),
    ({"response_format": {"type": "json_object"}}, "response_format", "not offered"),
    ({"presence_penalty": 0.5}, "presence_penalty", "not offered"),
    ({"frequency_penalty": -1}, "frequency_penalty", "not offered"),
    ({"logit_bias": {"5": 1}}, "logit_bias", "not offered"),
    ({"temprature": 0}, "temprature", "not a parameter of this server"),
    ({"stream_options": {"x": 1}}, "stream_options.x", "not a parameter of this server"),
    ({"model": None}, "model", "valid string"),
]


@pytest.mark.parametrize(("change", "param", "text"), BAD_CHATS, ids=[str(bad[0])[:60] for bad in BAD_CHATS])
async def test_bad_chat_parameters(http: httpx.AsyncClient, change: dict[str, Any], param: str, text: str) -> None:
    """A value that cannot be used is refused with status 400, and its parameter is named."""
    response = await http.post("/v1/chat/completions", json={**CHAT, **change})
    error = error_in(response)
    assert (response.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert text in error["message"]
    assert param in error["message"]


BAD_COMPLETIONS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": ""}, "prompt is empty"),
    ({"prompt": []}, "prompt is empty"),
    ({"prompt": [None]}, "must be a string"),
    ({"prompt": [[]]}, "prompt is empty"),
    ({"prompt": ["a", ""]}, "prompt is empty"),
    ({"prompt": ["a", 5]}, "must be a string"),
    ({"prompt": [True]}, "must be a string"),
    ({"prompt": None}, "must be a string"),
    ({"prompt": [5, 320]}, "token id 320; this model has ids from 0 to 319"),
    ({"prompt": [-1]}, "token id -1"),
    ({"prompt": ["a"] * 65, "n": 2}, "asks for 130 outputs; at most 128"),
]


@pytest.mark.parametrize(("change", "text"), BAD_COMPLETIONS, ids=[str(bad[0])[:40] for bad in BAD_COMPLETIONS])
async def test_bad_prompts(http: httpx.AsyncClient, change: dict[str, Any], text: str) -> None:
    """A prompt that cannot be used is refused with status 400 and the parameter `prompt`."""
    response = await http.post("/v1/completions", json={**COMPLETION, **change})
    error = error_in(response)
    assert (response.status_code, error["param"]) == (400, "prompt")
    assert text in error["message"]


@pytest.mark.parametrize(
    "change",
    [
        {"logprobs": False, "tools": [], "response_format": {"type": "text"}, "tool_choice": "none"},
        {"presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "n": None, "seed": None},
        {"user": "u", "metadata": {"a": "b"}, "store": False, "stop": None, "stream_options": None},
        {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "top_p": 1, "temperature": 0},
    ],
)
async def test_values_that_change_nothing(http: httpx.AsyncClient, change: dict[str, Any]) -> None:
    """A parameter that is not offered may be sent with the value that leaves the answer as it is."""
    assert (await http.post("/v1/chat/completions", json={**CHAT, **change})).status_code == 200


async def test_body_that_is_not_json(http: httpx.AsyncClient) -> None:
    """A body that is not JSON, or no object, is refused with status 400."""
    headers = {"content-type": "application/json"}
    for content in (b"{", b"", b"[]", b'"x"', b"\xff"):
        response = await http.post("/v1/chat/completions", content=content, headers=headers)
        assert (response.status_code, error_in(response)["type"]) == (400, "invalid_request_error"), content


async def test_text_that_is_no_text(http: httpx.AsyncClient) -> None:
    """Half a surrogate pair is JSON and no text: it is refused wherever it would become part of a prompt."""
    headers = {"content-type": "application/json"}
    half = b'"\\ud800"'
    for path, content in (
        ("completions", b'{"model": "tiny", "prompt": %s}' % half),
        ("chat/completions", b'{"model": "tiny", "messages": [{"role": "user", "content": %s}]}' % half),
        (
            "chat/completions",
            b'{"model": "tiny", "messages": [{"role": "user", "content": [{"type": "text", "text": %s}]}]}' % half,
        ),
    ):
        response = await http.post(f"/v1/{path}", content=content, headers=headers)
        assert response.status_code == 400, content
        assert "no Unicode text: surrogates not allowed" in error_in(response)["message"]


async def test_prompt_over_the_limit(http: httpx.AsyncClient, gateway: FakeGateway) -> None:
    """A prompt that cannot fit is refused with both numbers, before the scheduler is asked."""
    num_tokens = len(gateway.model.encode("a b" * 300))
    response = await http.post("/v1/completions", json={**COMPLETION, "prompt": "a b" * 300})
    error = error_in(response)
    assert (response.status_code, error["code"]) == (400, "context_length_exceeded")
    assert "512" in error["message"]
    assert str(num_tokens) in error["message"]
    response = await http.post("/v1/chat/completions", json={**CHAT, "max_tokens": 510})
    assert "max_tokens is 510" in error_in(response)["message"]
    assert gateway.scheduler.requests == []


async def test_unknown_model(http: httpx.AsyncClient) -> None:
    """Another model's name is 404, for requests and in the list, and says which name is right."""
    posted = await http.post("/v1/chat/completions", json={**CHAT, "model": "gpt-5"})
    asked = await http.get("/v1/models/some/other")
    for response in (posted, asked):
        error = error_in(response)
        assert (response.status_code, error["code"]) == (404, "model_not_found")
        assert f"this server has '{MODEL}'" in error["message"]


async def test_paths_and_methods(http: httpx.AsyncClient) -> None:
    """An unknown path is 404, another method 405 with the allowed ones."""
    described = (await http.get("/openapi.json")).json()["paths"]
    assert {"/v1/chat/completions", "/v1/completions", "/v1/models", "/health", "/ready"} <= described.keys()
    response = await http.get("/v2/chat")
    assert (response.status_code, error_in(response)["type"]) == (404, "invalid_request_error")
    response = await http.get("/v1/chat/completions")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert "Allow" in error_in(response)["message"]


SCHEDULER_ERRORS: list[tuple[EdgeweaveError, int, str, str | None]] = [
    (PromptTooLongError("9 tokens do not fit into 8"), 400, "invalid_request_error", "context_length_exceeded"),
    (OverloadedError("100 requests wait"), 429, "rate_limit_error", "rate_limit_exceeded"),
    (UnitFailedError("segment failed"), 500, "server_error", None),
    (SessionLostError("decode lane broke"), 503, "service_unavailable", None),
    (MismatchError("split 1:1 and 2:1 differ"), 503, "service_unavailable", None),
    (DeadlineError("took longer than 5 s"), 504, "timeout_error", None),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("raised", "status", "kind", "code"), SCHEDULER_ERRORS, ids=[type(row[0]).__name__ for row in SCHEDULER_ERRORS]
)
async def test_errors_of_the_scheduler(
    http: httpx.AsyncClient,
    gateway: FakeGateway,
    *,
    stream: bool,
    raised: EdgeweaveError,
    status: int,
    kind: str,
    code: str | None,
) -> None:
    """What the scheduler refuses has its own status, also for a stream that has not begun."""
    gateway.scheduler.error = raised
    response = await http.post("/v1/chat/completions", json={**CHAT, "stream": stream})
    error = error_in(response)
    assert (response.status_code, error["type"], error["code"]) == (status, kind, code)
    assert error["message"] == str(raised)
    assert ("retry-after" in response.headers) == (status in {429, 503})


async def test_error_within_a_stream(http: httpx.AsyncClient, gateway: FakeGateway, openai: AsyncOpenAI) -> None:
    """An error after the first text is an event, then the stream ends; the SDK raises it."""
    gateway.scheduler.error = SessionLostError("decode lane broke")
    gateway.scheduler.fail_at = 4
    response = await http.post("/v1/chat/completions", json={**CHAT, "stream": True})
    events = response.text.strip().split("\n\n")
    assert response.status_code == 200
    assert events[0].startswith("data: {")
    name, content = events[-1].split("\n")
    assert name == "event: error"
    assert json.loads(content.removeprefix("data: "))["error"]["message"] == "decode lane broke"
    stream = await openai.chat.completions.create(**CHAT, stream=True)
    with pytest.raises(openai_sdk.APIError, match="decode lane broke"):
        _ = [chunk async for chunk in stream]


async def test_one_of_several_outputs_fails(http: httpx.AsyncClient, gateway: FakeGateway) -> None:
    """An error of one output ends the request, and the other outputs are aborted."""
    gateway.scheduler.hold_at = 1
    gateway.scheduler.fails = lambda request: request.prompt_token_ids[0] == 5
    gateway.scheduler.error = UnitFailedError("segment failed")
    response = await http.post("/v1/completions", json={**COMPLETION, "prompt": [[4], [5]]})
    assert (response.status_code, error_in(response)["message"]) == (500, "segment failed")
    await gateway.scheduler.aborted.wait()


async def test_nobody_behind_the_gateway(model_folder: Path) -> None:
    """Without a scheduler the gateway answers 503 and says who does not answer."""
    scheduler = FakeScheduler(script=lambda _: (5,))
    async with (
        compose_gateway(model_folder, scheduler=scheduler, behind="127.0.0.1:1") as gateway,
        without_network(gateway) as http,
    ):
        response = await http.post("/v1/chat/completions", json=CHAT)
        ready = await http.get("/ready")
    assert response.status_code == 503
    assert "scheduler at 127.0.0.1:1 does not answer" in error_in(response)["message"]
    assert ready.status_code == 503


async def test_api_keys(model_folder: Path) -> None:
    """With keys, /v1/ asks for one of them before it reads anything; health needs none."""
    scheduler = FakeScheduler(script=lambda _: (5,))
    async with (
        compose_gateway(model_folder, scheduler=scheduler, api_keys=["k1", "k2"]) as gateway,
        without_network(gateway) as http,
    ):
        for headers in ({}, {"authorization": "Bearer k3"}, {"authorization": "Basic k1"}):
            response = await http.post("/v1/chat/completions", content=b"{", headers=headers)
            assert (response.status_code, error_in(response)["code"]) == (401, "invalid_api_key")
        for key in ("k1", "k2"):
            headers = {"authorization": f"Bearer {key}"}
            assert (await http.post("/v1/chat/completions", json=CHAT, headers=headers)).status_code == 200
        assert (await http.get("/health")).status_code == 200


async def test_size_of_bodies(model_folder: Path) -> None:
    """A body over the limit is refused with 413, whether its length is announced or not."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b" " * 400

    scheduler = FakeScheduler(script=lambda _: (5,))
    headers = {"content-type": "application/json"}
    async with (
        compose_gateway(model_folder, scheduler=scheduler, max_body_bytes=1000) as gateway,
        serve_http(gateway) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        for content in (b" " * 1001, pieces()):
            response = await http.post("/v1/completions", content=content, headers=headers)
            assert (response.status_code, error_in(response)["type"]) == (413, "invalid_request_error")
        assert (await http.post("/v1/completions", json=COMPLETION)).status_code == 200
