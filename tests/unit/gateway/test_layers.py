"""The layers around the application, each by itself."""

import asyncio
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from edgeweave.clock import ManualClock
from edgeweave.errors import AuthenticationError, InvalidSettingsError, UnavailableError
from edgeweave_gateway.api_keys import ApiKeys
from edgeweave_gateway.front import Front
from edgeweave_gateway.presence import while_connected
from edgeweave_gateway.server import listen, url_of


def http_scope(path: str = "/v1/models", **headers: str) -> dict[str, Any]:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": "GET", "path": path, "headers": pairs}


async def nothing_more() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("never reached")


async def ok(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("ok")(scope, receive, send)


async def sent_by(app: Any, scope: dict[str, Any]) -> list[Message]:
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, nothing_more, send)
    return messages


async def test_front_answers_what_a_layer_raised() -> None:
    """An error that was raised before the application answered becomes an answer, with the request id."""

    async def refuses(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise UnavailableError("not now")

    messages = await sent_by(Front(refuses, clock=ManualClock()), http_scope())
    assert messages[0]["status"] == 503
    assert b"not now" in messages[1]["body"]
    assert any(name == b"x-request-id" for name, _ in messages[0]["headers"])


async def test_front_does_not_answer_twice() -> None:
    """An error after the answer has begun is logged by class and place, and nothing is added to the answer."""

    async def breaks(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("a secret")

    with capture_logs() as logs:
        messages = await sent_by(Front(breaks, clock=ManualClock()), http_scope())
    assert [message["type"] for message in messages] == ["http.response.start"]
    failed = next(entry for entry in logs if entry["event"] == "request_failed")
    assert failed["error"] == "RuntimeError"
    assert "test_layers.py" in failed["at"][-1]
    assert "secret" not in str(logs)


async def test_front_measures() -> None:
    """The log line has method, path, status and duration; probes are quiet."""
    clock = ManualClock()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        clock.advance(1_500_000)
        await ok(scope, receive, send)

    with capture_logs() as logs:
        await sent_by(Front(slow, clock=clock), http_scope())
        await sent_by(Front(slow, clock=clock), http_scope("/ready"))
    first, second = logs
    assert (first["method"], first["path"], first["status"], first["duration_ms"]) == ("GET", "/v1/models", 200, 1500)
    assert (first["log_level"], second["log_level"]) == ("info", "debug")


async def test_front_passes_other_protocols() -> None:
    """What is not HTTP goes through as it is."""
    scopes = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scopes.append(scope)

    await sent_by(Front(app, clock=ManualClock()), {"type": "lifespan"})
    assert scopes == [{"type": "lifespan"}]


@pytest.mark.parametrize("authorization", ["Bearer k", "bearer  k ", "BEARER k"])
async def test_good_key(authorization: str) -> None:
    """The scheme is read without its case, as HTTP has it."""
    messages = await sent_by(ApiKeys(ok, keys=["j", "k"]), http_scope(authorization=authorization))
    assert messages[0]["status"] == 200


@pytest.mark.parametrize("authorization", ["", "k", "Bearer", "Bearer kk", "Token k", "Bearer \xfc"])
async def test_bad_key(authorization: str) -> None:
    """Anything but a key of the list, as a bearer token, is refused."""
    with pytest.raises(AuthenticationError):
        await sent_by(ApiKeys(ok, keys=["j", "k"]), http_scope(authorization=authorization))


async def test_no_keys() -> None:
    """Without keys, and outside of /v1/, none is asked for."""
    assert (await sent_by(ApiKeys(ok, keys=[]), http_scope()))[0]["status"] == 200
    assert (await sent_by(ApiKeys(ok, keys=["k"]), http_scope("/health")))[0]["status"] == 200


async def test_work_ends_when_the_client_leaves() -> None:
    """Work is cancelled, and has ended, before the caller hears that the client is gone."""
    ended = False
    leaves = asyncio.Event()

    async def work() -> None:
        nonlocal ended
        try:
            leaves.set()
            await asyncio.Event().wait()
        finally:
            ended = True

    async def receive() -> Message:
        await leaves.wait()
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnect):
        await while_connected(receive, work())
    assert ended


async def test_work_that_ends_by_itself() -> None:
    """The result, or the error, of the work comes through while the client stays."""

    async def result(value: int) -> int:
        return 10 // value

    assert await while_connected(nothing_more, result(5)) == 2
    with pytest.raises(ZeroDivisionError):
        await while_connected(nothing_more, result(0))


@pytest.mark.parametrize(("host", "url"), [("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")])
def test_url(host: str, url: str) -> None:
    """The URL of either family can be pasted into a client."""
    with listen(host, 0) as bound:
        assert url_of(bound) == f"{url}{bound.getsockname()[1]}"


def test_port_in_use() -> None:
    """Of two gateways on one port the second one says so, at once."""
    with listen("127.0.0.1", 0) as bound, pytest.raises(InvalidSettingsError, match="choose another with --port"):
        listen("127.0.0.1", bound.getsockname()[1])


def test_foreign_address() -> None:
    """An address that is not ours is named."""
    with pytest.raises(InvalidSettingsError, match=r"HTTP on 192\.0\.2\.1:0: Cannot assign"):
        listen("192.0.2.1", 0)
