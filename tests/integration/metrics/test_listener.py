"""`/metrics` of a service without HTTP of its own: real sockets, real requests."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from edgeweave.errors import InvalidSettingsError
from edgeweave.metrics import EngineCollector, OwnMeter, metrics_served
from fakes.metered import Scraped

ANY_PORT = "127.0.0.1:0"
PROMETHEUS_ACCEPTS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


class BrokenCollector(Collector):
    """What a mistake in a collector would be."""

    def collect(self) -> Iterator[Family]:
        raise RuntimeError("a mistake")


def edge() -> EngineCollector:
    return EngineCollector("edge", OwnMeter())


async def spoken(port: int | None, words: bytes) -> bytes:
    """Say `words` to the port and return all that comes back; nothing where the connection is reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(words)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("accept", ["", PROMETHEUS_ACCEPTS])
async def test_a_scrape_gets_every_name_as_it_is_in_the_registry(accept: str) -> None:
    """Whatever form a reader prefers, a name has its colon."""
    async with metrics_served(ANY_PORT, "edge", edge()) as port, httpx.AsyncClient() as http:
        response = await http.get(f"http://127.0.0.1:{port}/metrics", headers={"accept": accept})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    told = Scraped(response.text)
    assert told.value("edgeweave:engine_busy_seconds_total", engine="edge") == 0
    assert told.labels_of("edgeweave:build_info")[0]["service"] == "edge"
    assert told.value("process_cpu_seconds_total") > 0
    assert "edgeweave_" not in response.text


async def test_other_requests_are_told_what_to_ask_for() -> None:
    """One page, to be read; the head alone is an answer of its own."""
    async with metrics_served(ANY_PORT, "edge", edge()) as port, httpx.AsyncClient() as http:
        url = f"http://127.0.0.1:{port}"
        whole, head = await http.get(f"{url}/metrics?name=x"), await http.head(f"{url}/metrics")
        elsewhere, posted = await http.get(f"{url}/"), await http.post(f"{url}/metrics", content=b"x")
        garbled = await spoken(port, b"metrics, please\r\n\r\n")
    assert (whole.status_code, head.status_code, head.content) == (200, 200, b"")
    assert int(head.headers["content-length"]) > 0
    assert (elsewhere.status_code, elsewhere.text) == (404, "metrics are at /metrics\n")
    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")
    assert garbled.startswith(b"HTTP/1.1 400 ")


async def test_what_is_no_request_gets_no_answer() -> None:
    """A head without an end would fill the memory; a caller that leaves early is no error."""
    async with metrics_served(ANY_PORT, "edge", edge()) as port:
        assert await spoken(port, b"GET /metrics HTTP/1.1\r\nx: " + b"y" * 100_000) == b""
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        assert (await spoken(port, b"GET /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_a_mistake_in_a_collector_ends_the_scrape_alone() -> None:
    """The service behind it serves requests."""
    async with metrics_served(ANY_PORT, "edge", BrokenCollector()) as port, httpx.AsyncClient() as http:
        for _ in range(2):
            response = await http.get(f"http://127.0.0.1:{port}/metrics")
            assert (response.status_code, "log" in response.text) == (500, True)


async def test_stopping_ends_open_connections_and_frees_the_port() -> None:
    """A scraper that holds its connection does not hold the service."""
    async with metrics_served(ANY_PORT, "edge", edge()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /met")
        await writer.drain()
        await asyncio.sleep(0)
    assert await reader.read() == b""
    writer.close()
    async with metrics_served(f"127.0.0.1:{port}", "edge", edge()) as again:
        assert again == port


async def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    """So is an address that is not ours, and a name that nobody knows."""
    async with metrics_served(ANY_PORT, "edge", edge()) as port:
        taken = f"127.0.0.1:{port}"
        with pytest.raises(InvalidSettingsError, match=rf"on {taken}: Address already in use; .*--metrics-listen$"):
            async with metrics_served(taken, "cloud", edge()):
                pass
    with pytest.raises(InvalidSettingsError, match=r"metrics on 192\.0\.2\.1:0: Cannot assign .*--metrics-listen$"):
        async with metrics_served("192.0.2.1:0", "edge", edge()):
            pass


async def test_without_an_address_nothing_is_served() -> None:
    """That is the default."""
    async with metrics_served(None, "edge", edge()) as port:
        assert port is None
