"""`/metrics` of the gateway: what was asked over real HTTP, by route and status."""

from pathlib import Path

import httpx
from openai import AsyncOpenAI

from fakes.gateway import MODEL, FakeGateway, compose_gateway, serve_http
from fakes.metered import Scraped
from fakes.scheduler import FakeScheduler

CHAT = "/v1/chat/completions"
KEY = {"authorization": "Bearer k"}


async def scraped(url: str, **headers: str) -> Scraped:
    async with httpx.AsyncClient() as http:
        response = await http.get(f"{url}/metrics", headers=headers)
    assert response.status_code == 200, response.text
    return Scraped(response.text)


def num_answered(told: Scraped, path: str, status: int) -> float:
    return told.value("edgeweave:http_requests_total", path=path, status=str(status))


async def test_requests_are_counted_by_route_and_status(url: str, openai: AsyncOpenAI) -> None:
    """A path that nobody serves, or with the name of a model in it, makes no series of its own."""
    async with httpx.AsyncClient(base_url=url) as http:
        for path in ("/v1/models/tiny", "/v1/models/large", "/wp-login.php", "/.env"):
            await http.get(path)
    for _ in range(2):
        await openai.completions.create(model=MODEL, prompt="a")
    stream = await openai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "?"}], stream=True)
    assert [chunk async for chunk in stream]
    told = await scraped(url)
    assert num_answered(told, "/v1/models/{model:path}", 200) == 1
    assert num_answered(told, "/v1/models/{model:path}", 404) == 1
    assert num_answered(told, "none", 404) == 2
    assert num_answered(told, "/v1/completions", 200) == 2
    assert num_answered(told, CHAT, 200) == 1
    assert told.value("edgeweave:http_request_duration_seconds_count", path="/v1/completions") == 2
    assert told.value("edgeweave:http_requests_in_progress") == 1  # the scrape itself
    assert told.value("edgeweave:gateway_ready") == 1
    assert num_answered(await scraped(url), "/metrics", 200) == 1


async def test_a_stream_is_in_progress_until_its_last_byte(gateway: FakeGateway, url: str) -> None:
    """So is its duration."""
    gateway.scheduler.hold_at = 1
    body = {"model": MODEL, "prompt": "a", "stream": True}
    async with httpx.AsyncClient(base_url=url) as http, http.stream("POST", "/v1/completions", json=body) as response:
        await gateway.scheduler.holding.wait()
        told = await scraped(url)
        assert told.value("edgeweave:http_requests_in_progress") == 2
        assert told.labels_of("edgeweave:http_requests_total") == []
        gateway.scheduler.release.set()
        await response.aread()
    assert num_answered(await scraped(url), "/v1/completions", 200) == 1


async def test_with_keys_metrics_ask_for_one(model_folder: Path) -> None:
    """They tell how much a site is used; Prometheus can show a key. Who shows none is counted all the same."""
    async with (
        compose_gateway(model_folder, scheduler=FakeScheduler(lambda _: ()), api_keys=["k"]) as gateway,
        serve_http(gateway) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        assert (await http.get("/metrics")).status_code == 401
        told = await scraped(url, **KEY)
    assert num_answered(told, "none", 401) == 1


async def test_metrics_can_be_open(model_folder: Path) -> None:
    """Where the settings say so; the API is not."""
    scheduler = FakeScheduler(lambda _: ())
    async with (
        compose_gateway(model_folder, scheduler=scheduler, api_keys=["k"], metrics_need_key=False) as gateway,
        serve_http(gateway) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        assert (await http.get("/metrics")).status_code == 200
        assert (await http.get("/v1/models")).status_code == 401


async def test_metrics_are_not_part_of_the_api(url: str) -> None:
    """Clients of the API do not need them."""
    async with httpx.AsyncClient(base_url=url) as http:
        assert "/metrics" not in (await http.get("/openapi.json")).json()["paths"]


async def test_a_mesh_that_does_not_serve_is_told(model_folder: Path) -> None:
    """The gateway answers although nothing behind it does."""
    async with (
        compose_gateway(model_folder, scheduler=FakeScheduler(lambda _: ()), behind="127.0.0.1:1") as gateway,
        serve_http(gateway) as url,
    ):
        assert (await scraped(url)).value("edgeweave:gateway_ready") == 0
