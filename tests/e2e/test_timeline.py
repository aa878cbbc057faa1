"""The timeline page before a real mesh: real requests over a link of 1,000 km, seen and followed in a browser."""

import asyncio
import time

import pytest
from openai import AsyncOpenAI

from edgeweave.interleave.nouns import PlanKind
from fakes.browser import chromium, looking_at, needs_chromium
from fakes.processes import ProcessMesh
from fakes.timeline_page import TimelinePage
from weaving.use import state_at_rest

pytestmark = [needs_chromium, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

ONE_WAY_MS = 4.9
NUM_REQUESTS = 6


async def ask(mesh: ProcessMesh, text: str) -> None:
    async with AsyncOpenAI(base_url=f"{mesh.url}/v1", api_key="unused", max_retries=0) as client:
        model = (await client.models.list()).data[0].id
        await client.completions.create(model=model, prompt=text, max_tokens=12, temperature=0.0)


async def test_what_a_mesh_did_is_seen_and_a_request_of_it_followed(mesh: ProcessMesh) -> None:
    """Under plan `serial` the cloud waits for each step: the page says so, by cause, and shows where a request was."""
    async with mesh.replaced(link={"delay_ms": ONE_WAY_MS}):
        await mesh.serving_http()
        await mesh.client.set_plan(PlanKind.SERIAL)
        asked_ms = time.time() * 1000  # the scheduler keeps the requests of other tests too
        latest = f"[...timeline.history.requests.values()].filter(each => each.begin >= {asked_ms})"
        await asyncio.gather(*(ask(mesh, "one two three " * (4 + number)) for number in range(NUM_REQUESTS)))
        await state_at_rest(mesh.client)
        async with chromium() as browser, looking_at(browser, f"{mesh.url}/timeline") as looked:
            page = TimelinePage(looked)
            await page.until(f"globalThis.timeline !== undefined && {latest}.length === {NUM_REQUESTS}")
            [begin, end] = await page.until(
                f"[Math.min(...{latest}.map(each => each.begin)), Math.max(...{latest}.map(each => each.end))]"
            )
            await page.show(begin, end)
            await page.until("document.querySelectorAll('#shares tr.kind').length > 3")
            shares = await page.shares()
            in_cloud = {name: float(cloud.rstrip("%")) for name, (_, cloud) in shares.items() if cloud}
            assert in_cloud["bubbles"] > in_cloud["busy"], in_cloud
            assert in_cloud["bubble await_decode_hidden"] > in_cloud["busy"] / 2, in_cloud
            assert {"segment", "body", "turnaround", "head", "tail"} <= set(shares)
            await looked.page.click("#requests tbody button >> nth=0")
            await page.until("document.querySelector('#stop') !== null")
            lanes = await looked.asked(
                "[...new Set(timeline.history.ofRequest(timeline.followed).map(each => each.lane))]"
            )
            assert sorted(lanes) == ["cloud", "edge"]
            assert "on the link" in await page.detail()
            assert looked.errors == []
            assert len(looked.hosts) == 1
    await mesh.serving_http()
