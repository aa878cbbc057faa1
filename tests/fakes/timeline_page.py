"""The timeline page as somebody sees and uses it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from playwright.async_api import expect

from fakes.browser import Colour, Looked

SCROLL = 400
WAIT_MS = 60_000
POLL_MS = 50


@dataclass
class TimelinePage:
    """Reads and points at what is shown; times are milliseconds of the wall clock."""

    looked: Looked

    async def told(self, words: str) -> None:
        """Wait until the status line says `words`."""
        await expect(self.looked.page.locator("#status")).to_contain_text(words, timeout=WAIT_MS)

    async def shown_ms(self) -> tuple[float, float]:
        """Return begin and end of the time that is shown."""
        begin, end = await self.looked.asked("timeline.lanes.range")
        return begin, end

    async def show(self, begin_ms: float, end_ms: float) -> None:
        """Show a time."""
        await self.looked.asked("range => { timeline._goLive(false); timeline._move(range); }", [begin_ms, end_ms])

    async def place(self, lane: str, at_ms: float) -> tuple[float, float]:
        """Return where a time of a lane is on the window."""
        place = await self.looked.asked("([lane, at]) => timeline.lanes.placeOf(lane, at)", [lane, at_ms])
        return place["x"], place["y"]

    async def colour(self, lane: str, at_ms: float, *, above: float = 0.0) -> Colour:
        """Return the colour of a lane at a time, `above` pixels over its middle; what is drawn late is waited for."""
        await self.looked.asked("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
        x, y = await self.place(lane, at_ms)
        return await self.looked.colour_at(x, y - above)

    async def click(self, lane: str, at_ms: float) -> None:
        """Click at a time of a lane."""
        await self.looked.page.mouse.click(*(await self.place(lane, at_ms)))

    async def scroll(self, lane: str, at_ms: float, *, by: int = -SCROLL) -> None:
        """Turn the wheel there: up, which is less than 0, zooms in."""
        await self.looked.page.mouse.move(*(await self.place(lane, at_ms)))
        await self.looked.page.mouse.wheel(0, by)

    async def drag(self, lane: str, from_ms: float, to_ms: float) -> None:
        """Drag from one time to another."""
        mouse = self.looked.page.mouse
        await mouse.move(*(await self.place(lane, from_ms)))
        to = await self.place(lane, to_ms)
        await mouse.down()
        await mouse.move(*to, steps=4)
        await mouse.up()

    async def shares(self) -> dict[str, tuple[str, str]]:
        """Return the shares of edge and cloud by what they are of."""
        rows: list[list[str]] = await self.looked.asked(
            "[...document.querySelectorAll('#shares tbody tr')].map(row => [...row.cells].map(each => each.innerText))"
        )
        return {name: (edge, cloud) for name, edge, cloud in rows}

    async def detail(self) -> str:
        """Return the text beside the picture."""
        return await self.looked.page.locator("#detail").inner_text()

    async def until(self, script: str) -> Any:
        """Wait until a script on the page returns something true, and return that.

        It is asked again and again from outside: a script that waits on the page is against the policy of the page.
        """
        async with asyncio.timeout(WAIT_MS / 1000):
            while not (value := await self.looked.asked(script)):
                await self.looked.page.wait_for_timeout(POLL_MS)
        return value
