"""The Compose files start a mesh that serves and shows itself, without a container engine."""

import asyncio
import urllib.request
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from edgeweave.cli.readiness import until_page
from fakes.collector import collector
from fakes.compose import TOOLS, scrape_targets, services
from fakes.containers import container_addresses, containers_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

_READY_TIMEOUT_S = 30.0


@pytest.mark.timeout(150)
async def test_what_the_images_run_serves_and_is_seen(model: Path) -> None:
    """Each image's own entry and health check, with the environment that Compose resolves, over the emulated link.

    Each part starts when those that it waits for are healthy. A chat is answered; every target of Prometheus serves
    metrics; the spans reach the address of Jaeger, from the site; and SIGTERM is an orderly end for all.
    """
    running, targets = services("wan", "observability"), scrape_targets()
    addresses = container_addresses(running)
    mesh = {name: service for name, service in running.items() if name not in TOOLS}
    async with (
        collector(f"{addresses['jaeger']}:4317") as jaeger,
        containers_of(mesh, addresses=addresses, model=model),
    ):
        url = f"http://{addresses['gateway']}:8000"
        async with asyncio.timeout(_READY_TIMEOUT_S):
            await until_page(f"{url}/ready")
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as openai:
            answer = await openai.chat.completions.create(
                model=running["gateway"]["environment"]["EDGEWEAVE_GATEWAY__MODEL_NAME"],
                messages=[{"role": "user", "content": "What do bees make?"}],
                max_tokens=8,
            )
        assert answer.choices[0].message.content
        pages = {
            name: await asyncio.to_thread(read, f"http://{addresses[name]}:{port}/metrics")
            for name, port in targets.items()
            if name in mesh
        }
    assert pages.keys() >= {"gateway", "scheduler", "edge", "cloud"}
    assert all("\n# TYPE edgeweave" in page for page in pages.values())
    assert {span.service for span in jaeger.spans} >= {"edgeweave-gateway", "edgeweave-scheduler"}


def read(url: str) -> str:
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with without_proxy.open(url, timeout=5) as answer:
        return str(answer.read().decode())
