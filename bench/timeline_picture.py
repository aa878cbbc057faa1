"""Takes the pictures of the timeline page in docs/images: a mesh under load, and one request of it followed.

    python bench/timeline_picture.py --model FOLDER                 needs Chromium

The mesh has emulated engines at 1,000 km and serves load B under the adaptive plan; the gateway is a process of its own
before it, with the tokenizer of the model in FOLDER. What is seen is what the page shows to anybody.
"""

import argparse
import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path

from playwright.async_api import Page, async_playwright

from edgeweave.child import child_command
from edgeweave.cli.mesh import Mesh
from edgeweave.cli.readiness import until_page
from edgeweave.client import Client, TokenDelta
from edgeweave.clock import MonotonicClock
from edgeweave.interleave.nouns import PlanKind
from edgeweave.sim.profile import NPU
from weaving.engines import EmulatedEngines, options_for
from weaving.loads import TRACE, Prompt, bench_loads
from weaving.places import Place
from weaving.player import Player
from weaving.use import state_at_rest

SIZE = {"width": 1280, "height": 760}
SHOWN_MS = 1200
DISTANCE_KM = 1000.0
IMAGES = Path("docs/images")
_READY_S = 60.0


async def take(model: Path, *, num_requests: int) -> None:
    """Serve a load, and take both pictures of it."""
    load = bench_loads(trace=TRACE)["B"].first(num_requests)
    options = options_for(EmulatedEngines(NPU), load, Place(DISTANCE_KM))
    async with Mesh.start(options) as mesh, Client(mesh.scheduler_address) as client:
        await client.set_plan(PlanKind.ADAPTIVE)
        numbers = count(1)

        def ask(prompt: Prompt, length: int) -> AsyncGenerator[TokenDelta, None]:
            return client.generate(prompt, max_tokens=length, request_id=f"req-{next(numbers):03d}")

        player = Player(ask, MonotonicClock())
        await player.play(load.load, load.prompts(vocab_size=1 << 16))
        await state_at_rest(client)
        async with _gateway(mesh.scheduler_address, model) as url, _page(f"{url}/timeline") as page:
            await page.wait_for_selector("#requests tbody tr")
            await page.evaluate(
                f"""() => {{
                  const [begin, end] = timeline.history.bounds;
                  const middle = (begin + end) / 2;
                  timeline._goLive(false);
                  timeline._move([middle, middle + {SHOWN_MS}]);
                }}"""
            )
            await _shot(page, IMAGES / "timeline.png")
            await page.click("#requests tbody button >> nth=12")
            await page.wait_for_selector("#stop")
            await _shot(page, IMAGES / "timeline-request.png")


async def _shot(page: Page, path: Path) -> None:
    await page.mouse.move(2, 2)
    await page.evaluate("scrollTo(0, 0)")
    await page.wait_for_timeout(500)
    await page.screenshot(path=path)
    print(f"wrote {path}")


@asynccontextmanager
async def _gateway(scheduler: str, model: Path) -> AsyncIterator[str]:
    """Run a gateway, and yield its address."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("--scheduler", scheduler, "--model", str(model), "--port", str(port))
    process = await asyncio.create_subprocess_exec(*child_command("edgeweave_gateway", *words))
    try:
        async with asyncio.timeout(_READY_S):
            await until_page(f"http://127.0.0.1:{port}/ready")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def _page(url: str) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        page = await browser.new_page(viewport=SIZE)  # type: ignore[arg-type] # a mapping of the two
        await page.goto(url)
        yield page
        await browser.close()


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description="Takes the pictures of the timeline page.")
    parser.add_argument("--model", type=Path, required=True, help="folder of a model, for its tokenizer")
    parser.add_argument("--requests", type=int, default=60, help="how many are served [60]")
    options = parser.parse_args(argv)
    asyncio.run(take(options.model, num_requests=options.requests))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
