"""A headless Chromium that looks at a page, and keeps whom the page asked and what went wrong on it."""

import io
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH; Debian has it in `chromium`")
SIZE = (1280, 900)
_FLAGS = ("--no-sandbox", "--disable-quic", "--enable-unsafe-swiftshader")
Colour = tuple[int, int, int]


@dataclass
class Looked:
    """A page in a browser. `hosts` are all that were asked for anything, `errors` what scripts raised or logged."""

    page: Page
    hosts: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    async def colour_at(self, x: float, y: float) -> Colour:
        """Return what is seen at a place of the window."""
        shot = await self.page.screenshot(clip={"x": round(x), "y": round(y), "width": 1, "height": 1})
        pixel = Image.open(io.BytesIO(shot)).convert("RGB").getpixel((0, 0))
        assert isinstance(pixel, tuple)
        red, green, blue = map(int, pixel)
        return red, green, blue

    async def asked(self, script: str, argument: Any = None) -> Any:
        """Return what a script on the page returns."""
        return await self.page.evaluate(script, argument)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run a browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def looking_at(browser: Browser, url: str) -> AsyncIterator[Looked]:
    """Open a page in a window of its own."""
    width, height = SIZE
    async with await browser.new_context(viewport={"width": width, "height": height}) as context:
        looked = Looked(await context.new_page())
        looked.page.on("request", lambda request: looked.hosts.add(urlsplit(request.url).netloc))
        looked.page.on("pageerror", lambda error: looked.errors.append(str(error)))
        looked.page.on(
            "console", lambda message: looked.errors.append(message.text) if message.type == "error" else None
        )
        await looked.page.goto(url)
        yield looked
