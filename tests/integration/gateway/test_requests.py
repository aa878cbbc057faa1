"""The life of a request at the gateway: aborts, readiness, spans, logs."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import structlog
from opentelemetry.trace import StatusCode
from structlog.testing import capture_logs

from edgeweave.errors import SessionLostError
from edgeweave.v1 import scheduler_pb2
from fakes.gateway import MODEL, FakeGateway
from fakes.scheduler import READY

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "a secret word"}]}


async def until(gateway: FakeGateway, condition: Callable[[], bool]) -> None:
    while not condition():
        await gateway.readiness.news()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("hold_at", [0, 3])
async def test_client_that_leaves(gateway: FakeGateway, url: str, *, stream: bool, hold_at: int) -> None:
    """A closed connection aborts the request while the scheduler works, before and after the first text."""
    gateway.scheduler.hold_at = hold_at
    async with httpx.AsyncClient(base_url=url) as http:
        asking = asyncio.create_task(http.post("/v1/chat/completions", json={**CHAT, "stream": stream, "n": 2}))
        await gateway.scheduler.holding.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    async with asyncio.timeout(5):
        await gateway.scheduler.aborted.wait()
        await gateway.scheduler.idle.wait()


async def test_stop_string_ends_the_request(gateway: FakeGateway, url: str) -> None:
    """Behind a stop string nothing is computed: the answer comes and the request is aborted."""
    gateway.scheduler.hold_at = len(gateway.model.encode("Paris is the"))
    body = {**CHAT, "stream": True, "stop": "the"}
    async with httpx.AsyncClient(base_url=url) as http:
        response = await http.post("/v1/chat/completions", json=body)
    assert '"finish_reason":"stop"' in response.text
    assert response.text.endswith("data: [DONE]\n\n")
    async with asyncio.timeout(5):
        await gateway.scheduler.aborted.wait()


async def test_gateway_that_stops(gateway: FakeGateway, url: str) -> None:
    """When the gateway stops, answers that take long end with an error that says so: a status, or an event."""
    gateway.scheduler.hold_at = 2
    async with httpx.AsyncClient(base_url=url) as http:
        asking = asyncio.create_task(http.post("/v1/chat/completions", json=CHAT))
        async with http.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as streamed:
            await gateway.scheduler.holding.wait()
            gateway.stopping.set()
            whole = await asking
            events = (await streamed.aread()).decode().strip().split("\n\n")
    text = "the gateway is stopping; send the request again"
    assert (whole.status_code, whole.json()["error"]["message"]) == (503, text)
    assert events[-1].startswith("event: error\n")
    assert text in events[-1]
    async with asyncio.timeout(5):
        await gateway.scheduler.idle.wait()


async def test_readiness(gateway: FakeGateway, url: str) -> None:
    """Ready follows the mesh and says why not; health only says that the gateway lives."""
    async with httpx.AsyncClient(base_url=url) as http:
        await until(gateway, lambda: gateway.readiness.reason is None)
        assert (await http.get("/ready")).json() == {"status": "ready"}
        gateway.scheduler.show(
            scheduler_pb2.WatchMeshResponse(state=scheduler_pb2.SESSION_STATE_DOWN, reason="no cloud")
        )
        await until(gateway, lambda: gateway.readiness.reason is not None)
        response = await http.get("/ready")
        assert response.status_code == 503
        assert response.json()["reason"] == "the mesh is down: no cloud"
        assert (await http.get("/health")).json() == {"status": "ok"}


async def test_limit_of_the_mesh(gateway: FakeGateway, url: str) -> None:
    """Where the scheduler has less room than the model, its limit counts, also for the default."""
    mesh = scheduler_pb2.WatchMeshResponse()
    mesh.CopyFrom(READY)
    mesh.max_seq_len = 100
    gateway.scheduler.show(mesh)
    async with httpx.AsyncClient(base_url=url) as http:
        await until(gateway, lambda: gateway.readiness.max_seq_len is not None)
        await http.post("/v1/chat/completions", json=CHAT)
        too_long = await http.post("/v1/chat/completions", json={**CHAT, "max_tokens": 100})
    request = gateway.scheduler.requests[0]
    assert request.max_tokens == 100 - len(request.prompt_token_ids)
    assert "room for 100 tokens" in too_long.json()["error"]["message"]


async def test_request_ids(url: str) -> None:
    """A usable id of the client comes back; without one, or with one that is not, the gateway makes one."""
    async with httpx.AsyncClient(base_url=url) as http:
        given = await http.get("/v1/models", headers={"x-request-id": "my-1"})
        refused = await http.get("/nowhere", headers={"x-request-id": "a b\tc"})
        made = await http.post("/v1/chat/completions", json={**CHAT, "stream": True})
    assert given.headers["x-request-id"] == "my-1"
    assert refused.headers["x-request-id"].startswith("req-")
    assert made.headers["x-request-id"].startswith("req-")
    assert made.headers["content-type"].startswith("text/event-stream")


async def test_span_of_a_request(gateway: FakeGateway, url: str) -> None:
    """A request is one span by the GenAI conventions, in the trace of the client, and the scheduler joins it."""
    trace_id, parent_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    body = {**CHAT, "max_tokens": 3, "temperature": 0.5, "top_p": 0.5, "seed": 9, "stream": True}
    headers = {"traceparent": f"00-{trace_id}-{parent_id}-01", "x-request-id": "my-1"}
    async with httpx.AsyncClient(base_url=url) as http:
        response = await http.post("/v1/chat/completions", json=body, headers=headers)
    (span,) = gateway.spans.get_finished_spans()
    assert span.context is not None
    assert span.parent is not None
    assert (span.name, f"{span.parent.span_id:016x}") == (f"chat {MODEL}", parent_id)
    assert gateway.scheduler.metadata[0]["traceparent"] == f"00-{trace_id}-{span.context.span_id:016x}-01"
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "edgeweave",
        "gen_ai.request.model": MODEL,
        "gen_ai.request.max_tokens": 3,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.5,
        "gen_ai.request.seed": 9,
        "gen_ai.response.id": json.loads(response.text.split("\n")[0].removeprefix("data: "))["id"],
        "gen_ai.response.model": MODEL,
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": len(gateway.scheduler.requests[0].prompt_token_ids),
        "gen_ai.usage.output_tokens": 3,
        "edgeweave.request_id": "my-1",
    }


async def test_span_of_a_failed_request(gateway: FakeGateway, url: str) -> None:
    """A failed request's span has the class of its error, refused or broken, and ends."""
    async with httpx.AsyncClient(base_url=url) as http:
        await http.post("/v1/chat/completions", json={**CHAT, "max_tokens": 9999})
        gateway.scheduler.error = SessionLostError("decode lane broke")
        await http.post("/v1/chat/completions", json=CHAT)
    refused, broken = gateway.spans.get_finished_spans()
    assert [span.status.status_code for span in (refused, broken)] == [StatusCode.ERROR] * 2
    assert (refused.attributes or {})["error.type"] == "PromptTooLongError"
    assert (broken.attributes or {})["error.type"] == "SessionLostError"
    assert broken.events == ()


async def test_logs_and_spans_hold_no_prompt(gateway: FakeGateway, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No text and no ids of a prompt or an answer are in logs or spans, not even of an error with them in it."""
    ids = [41, 42, 43, 44]

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"cannot encode a secret word {ids}")

    async with httpx.AsyncClient(base_url=url) as http:
        with capture_logs([structlog.contextvars.merge_contextvars]) as logs:
            await http.post("/v1/chat/completions", json=CHAT)
            await http.post("/v1/completions", json={"model": MODEL, "prompt": ids})
            await http.post("/v1/completions", json={"model": MODEL, "prompt": ["a secret word", 3]})
            monkeypatch.setattr(type(gateway.model), "encode_chat", broken)
            response = await http.post("/v1/chat/completions", json=CHAT)
    assert response.status_code == 500
    assert "unexpected error" in response.json()["error"]["message"]
    written = str(logs) + str([span.to_json() for span in gateway.spans.get_finished_spans()])
    assert [entry["event"] for entry in logs].count("request_answered") == 4
    assert "RuntimeError" in written
    assert not any(marker in written for marker in ("secret", "Paris", "41, 42"))
