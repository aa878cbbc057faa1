"""The timeline page in a real browser: what is seen, zoomed, followed, and that nobody else is asked."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from edgeweave.tracing.store import SpanStore
from fakes.browser import chromium, looking_at, needs_chromium
from fakes.gateway import compose_gateway, serve_http
from fakes.scheduler import FakeScheduler
from fakes.text_model import write_model_folder
from fakes.timeline_page import TimelinePage
from fakes.timelines import BUBBLE_US, CYCLE_US, STEPS_PER_REQUEST, WORK_US, MadeTimelines

pytestmark = [needs_chromium, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

MADE = MadeTimelines(begin_us=time.time_ns() // 1000 - 60_000_000, num_steps=1_000)
MANY = MadeTimelines(begin_us=MADE.begin_us, num_steps=25_000)
SPANS_PER_STEP = 4
ALL_MADE = f"{MADE.num_steps * SPANS_PER_STEP:,} spans"
CYCLE_MS, WORK_MS, BUBBLE_MS = CYCLE_US / 1000, WORK_US / 1000, BUBBLE_US / 1000
BODY_COLOUR, CAUSE_COLOUR = (0x86, 0xB9, 0xE8), (0xF2, 0x8A, 0x1E)


def cycle_ms(step: int) -> float:
    """Return when a cycle begins: the edge runs first, the cloud is in a bubble first."""
    return MADE.begin_us / 1000 + step * CYCLE_MS


def is_near(seen: tuple[int, int, int], wanted: tuple[int, int, int]) -> bool:
    """Whether two colours are one to the eye."""
    return max(abs(one - other) for one, other in zip(seen, wanted, strict=True)) <= 12


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model_folder(tmp_path_factory.mktemp("model"))


@asynccontextmanager
async def opened(
    browser: Browser, folder: Path, store: SpanStore | None, *, api_keys: Sequence[str] = ()
) -> AsyncIterator[tuple[TimelinePage, FakeScheduler]]:
    """Open the page of a gateway whose scheduler has `store`; nothing may go wrong on it until the end."""
    scheduler = FakeScheduler(script=lambda _: (), store=store)
    async with (
        compose_gateway(folder, scheduler=scheduler, api_keys=api_keys) as gateway,
        serve_http(gateway) as url,
        looking_at(browser, f"{url}/timeline") as looked,
    ):
        yield TimelinePage(looked), scheduler
        assert looked.errors == []


@pytest_asyncio.fixture(loop_scope="module")
async def shown(browser: Browser, folder: Path) -> AsyncIterator[tuple[TimelinePage, FakeScheduler]]:
    """The page when it has drawn a thousand steps, and the scheduler that keeps them."""
    async with opened(browser, folder, MADE.stored()) as (page, scheduler):
        await page.told(ALL_MADE)
        yield page, scheduler


@pytest.fixture
def page(shown: tuple[TimelinePage, FakeScheduler]) -> TimelinePage:
    """The page."""
    return shown[0]


@pytest.fixture
def scheduler(shown: tuple[TimelinePage, FakeScheduler]) -> FakeScheduler:
    """The scheduler behind it."""
    return shown[1]


async def test_bubbles_are_seen_by_their_cause(page: TimelinePage) -> None:
    """In the colour of the cause, half as high as work; and their shares stand beside, by cause."""
    await page.show(cycle_ms(0), cycle_ms(10))
    bubble, work = cycle_ms(0) + BUBBLE_MS / 2, cycle_ms(0) + BUBBLE_MS + WORK_MS / 2
    assert is_near(await page.colour("cloud", work, above=10), BODY_COLOUR)
    assert is_near(await page.colour("cloud", work, above=-10), BODY_COLOUR)
    assert is_near(await page.colour("cloud", bubble, above=-10), CAUSE_COLOUR)
    assert min(await page.colour("cloud", bubble, above=10)) > 230  # paper
    shares = await page.shares()
    assert shares["busy"] == ("75.0%", "75.0%")
    assert shares["bubbles"] == ("25.0%", "25.0%")
    assert {name for name in shares if name.startswith("bubble ")} == {
        "bubble await_decode_hidden",
        "bubble await_prefill_hidden",
        "bubble grace",
        "bubble link",
        "bubble await_task",
    }


async def test_the_wheel_zooms_around_the_pointer_and_a_drag_moves(page: TimelinePage) -> None:
    """Live ends with the first of them: who looks is not carried on."""
    live = page.looked.page.locator("#live")
    await expect(live).to_have_attribute("aria-pressed", "true")
    await page.show(cycle_ms(100), cycle_ms(200))
    pointed = cycle_ms(150)
    await page.scroll("cloud", pointed)
    await page.until(f"timeline.lanes.range[1] - timeline.lanes.range[0] < {CYCLE_MS * 100}")
    begin, end = await page.shown_ms()
    assert begin < pointed < end
    await page.drag("edge", pointed, pointed + (end - begin) / 4)
    await page.until(f"timeline.lanes.range[0] < {begin - (end - begin) / 8}")
    moved_begin, moved_end = await page.shown_ms()
    assert moved_end - moved_begin == pytest.approx(end - begin, rel=1e-3)
    await expect(live).to_have_attribute("aria-pressed", "false")
    await page.scroll("cloud", (moved_begin + moved_end) / 2, by=400)
    await page.until(f"timeline.lanes.range[1] - timeline.lanes.range[0] > {(end - begin) * 1.01}")


async def test_a_request_is_followed_from_engine_to_engine_on_click(page: TimelinePage) -> None:
    """Its units stay bright and all others are dimmed, its steps and hops come between, and its way is told."""
    number, first = 3, 3 * STEPS_PER_REQUEST
    await page.show(cycle_ms(first - 4), cycle_ms(first + 12))
    at, other = (cycle_ms(step) + BUBBLE_MS + WORK_MS / 2 for step in (first + 2, first - 2))
    assert is_near(await page.colour("cloud", at, above=10), BODY_COLOUR)
    await page.click("cloud", at)
    await page.until("timeline.followed !== null && document.querySelector('#stop') !== null")
    detail = await page.detail()
    assert f"request req-{number}" in detail
    assert f"{MADE.request(number).trace:032x}" in detail
    assert "8 hops" in detail
    begin, end = await page.shown_ms()
    assert begin < cycle_ms(first)
    assert end > cycle_ms(first + STEPS_PER_REQUEST)
    assert is_near(await page.colour("cloud", at, above=10), BODY_COLOUR)
    assert is_near(await page.colour("edge", cycle_ms(first + 2) + WORK_MS / 2, above=10), (0x2C, 0x8C, 0x8C))
    assert is_near(await page.colour("link", cycle_ms(first + 2) + BUBBLE_MS / 4, above=10), (0x6B, 0x5B, 0x95))
    assert is_near(await page.colour("request", cycle_ms(first + 2) + BUBBLE_MS, above=10), BODY_COLOUR)
    await page.show(cycle_ms(first - 4), cycle_ms(first + 12))
    assert min(await page.colour("cloud", other, above=10)) > 220  # dimmed
    await page.looked.page.click("#stop")
    assert is_near(await page.colour("cloud", other, above=10), BODY_COLOUR)


async def test_a_request_is_chosen_from_the_newest(page: TimelinePage) -> None:
    """By its id."""
    newest = MADE.num_steps // STEPS_PER_REQUEST - 1
    await page.looked.page.click(f"#requests >> text=req-{newest}")
    await page.until("document.querySelector('#stop') !== null")
    assert f"request req-{newest}" in await page.detail()
    begin, end = await page.shown_ms()
    assert begin < cycle_ms(newest * STEPS_PER_REQUEST)
    assert end > cycle_ms(MADE.num_steps - 1)


async def test_a_kind_is_hidden_and_shown_by_its_row(page: TimelinePage) -> None:
    """The legend is the table of shares."""
    await page.show(cycle_ms(0), cycle_ms(10))
    at = cycle_ms(1) + BUBBLE_MS + WORK_MS / 2
    row = page.looked.page.locator("#shares tr.kind", has_text="body")
    await row.click()
    assert min(await page.colour("cloud", at, above=10)) > 230
    await row.click()
    assert is_near(await page.colour("cloud", at, above=10), BODY_COLOUR)


async def test_no_other_host_is_asked_or_could_be(page: TimelinePage) -> None:
    """All comes from the gateway, and the browser is told to refuse anything else."""
    assert page.looked.hosts == {urlsplit(page.looked.page.url).netloc}
    refused = await page.looked.asked("fetch('http://127.0.0.1:9/').then(() => 'asked', error => error.name)")
    assert refused == "TypeError"
    policy = [error for error in page.looked.errors if "Content Security Policy" in error]
    assert policy
    page.looked.errors.clear()


async def test_new_spans_come_by_themselves(page: TimelinePage, scheduler: FakeScheduler) -> None:
    """And the view goes with them while it is live."""
    store = scheduler.store
    assert store is not None
    later = MadeTimelines(begin_us=MADE.end_us, num_steps=100)
    for span in later.stored().timelines(after=0, begin_us=0):
        store.add_to_timelines(span)
    await page.told(f"{(MADE.num_steps + later.num_steps) * SPANS_PER_STEP:,} spans")
    assert (await page.shown_ms())[1] == pytest.approx(later.end_us / 1000, abs=CYCLE_MS)


async def test_a_scheduler_that_begins_anew_is_read_anew(page: TimelinePage, scheduler: FakeScheduler) -> None:
    """It counts from the begin; what it tells is added to what is drawn."""
    scheduler.store = MadeTimelines(begin_us=MADE.end_us, num_steps=10).stored()
    await page.told(f"{(MADE.num_steps + 10) * SPANS_PER_STEP:,} spans")


async def test_100_000_spans_are_drawn_zoomed_and_followed(browser: Browser, folder: Path) -> None:
    """All of them are on the page at once, and it still answers."""
    async with opened(browser, folder, MANY.stored()) as (page, _):
        await page.told("100,000 spans")
        await page.looked.page.click("text=All")
        begin, end = await page.shown_ms()
        assert end - begin == pytest.approx(MANY.num_steps * CYCLE_MS, rel=1e-3)
        assert (await page.shares())["bubbles"] == ("25.0%", "25.0%")
        # Spans are narrower than a pixel: a lane is a stack of shares, three quarters of it work.
        middle = (begin + end) / 2
        assert is_near(await page.colour("cloud", middle, above=-20), BODY_COLOUR)
        assert is_near(await page.colour("cloud", middle, above=8), BODY_COLOUR)
        bubbles = await page.colour("cloud", middle, above=20)
        assert not is_near(bubbles, BODY_COLOUR)
        assert min(bubbles) < 230
        pointed = cycle_ms(12_000)
        for _ in range(8):
            await page.scroll("cloud", pointed)
        await page.until(f"timeline.lanes.range[1] - timeline.lanes.range[0] < {(end - begin) / 4}")
        await page.show(cycle_ms(12_000), cycle_ms(12_008))
        at = cycle_ms(12_003) + BUBBLE_MS + WORK_MS / 2
        assert is_near(await page.colour("cloud", at, above=10), BODY_COLOUR)
        await page.click("cloud", at)
        await page.until("document.querySelector('#stop') !== null")
        assert f"request req-{12_003 // STEPS_PER_REQUEST}" in await page.detail()


async def test_the_page_asks_for_a_key_where_one_is_needed(browser: Browser, folder: Path) -> None:
    """Once; it is kept as long as the window."""
    async with opened(browser, folder, MADE.stored(), api_keys=["secret"]) as (page, _):
        looked = page.looked
        await page.told("the API key is missing or wrong")
        await looked.page.fill("#key input", "secret")
        await looked.page.click("#key button")
        await page.told(ALL_MADE)
        await expect(looked.page.locator("#key")).to_be_hidden()
        looked.errors.clear()  # the browser logs the status 401


async def test_where_no_spans_are_kept_the_page_says_what_to_do(browser: Browser, folder: Path) -> None:
    """And goes on when there are some."""
    async with opened(browser, folder, None) as (page, scheduler):
        await page.told("--keep-spans 0")
        scheduler.store = MADE.stored()
        await page.told(ALL_MADE)
        page.looked.errors.clear()  # the browser logs the status 503
