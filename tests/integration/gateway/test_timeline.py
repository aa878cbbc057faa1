"""The paths of the timeline page, without a browser: who gets what, and what is said where there is nothing."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fakes.gateway import compose_gateway, serve_http
from fakes.scheduler import FakeScheduler
from fakes.timelines import MadeTimelines

MADE = MadeTimelines(begin_us=time.time_ns() // 1000 - 60_000_000, num_steps=600)
SPANS_PER_STEP = 4
NUM_REQUESTS = 75
KEYS = ("k",)


@pytest.fixture
async def http(model_folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway whose scheduler keeps spans, and which asks for a key."""
    scheduler = FakeScheduler(script=lambda _: (), store=MADE.stored())
    async with (
        compose_gateway(model_folder, scheduler=scheduler, api_keys=KEYS) as gateway,
        serve_http(gateway) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        yield http


async def read(http: httpx.AsyncClient, **query: str | int) -> list[dict[str, object]]:
    """Return the lines of an answer."""
    answer = await http.get("/timeline/spans", params=query, headers={"authorization": "Bearer k"})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def column(lines: list[dict[str, object]], name: str) -> list[object]:
    return [value for line in lines for value in line[name]]  # type: ignore[attr-defined] # columns are lists


async def test_timelines_are_read_once_and_then_what_came_since(http: httpx.AsyncClient) -> None:
    """Steps, bubbles, and the requests themselves; nothing that is below a request."""
    lines = await read(http)
    names = column(lines, "name")
    assert len(names) == MADE.num_steps * SPANS_PER_STEP + NUM_REQUESTS
    assert set(names) == {"turnaround", "body", "bubble", "generate"}
    after = lines[-1]["next"]
    assert after == len(names)
    (rest,) = await read(http, after=str(after))
    assert (rest["name"], rest["next"]) == ([], after)


async def test_of_a_trace_all_is_read(http: httpx.AsyncClient) -> None:
    """The request itself and what is below it: more than what timelines have of it."""
    lines = await read(http, trace=f"{MADE.request(0).trace:032x}")
    assert sorted(set(column(lines, "name"))) == ["generate", "hop", "queue", "step"]  # type: ignore[type-var]


async def test_the_last_seconds_are_read_alone(http: httpx.AsyncClient) -> None:
    """By the end of spans: all of these are older than a minute less the time that they took."""
    assert column(await read(http, last_s=3600), "name")
    assert not column(await read(http, last_s=1), "name")


@pytest.mark.parametrize("query", ["trace=xyz", "trace=abc", "after=-1", "last_s=0", "after=many"])
async def test_a_question_that_makes_no_sense_is_refused(http: httpx.AsyncClient, query: str) -> None:
    """With the name of the parameter."""
    answer = await http.get(f"/timeline/spans?{query}", headers={"authorization": "Bearer k"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == query.partition("=")[0]


async def test_spans_need_the_key_and_the_page_does_not(http: httpx.AsyncClient) -> None:
    """The page itself says nothing of the site."""
    assert (await http.get("/timeline/spans")).status_code == 401
    for path in ("/timeline", "/timeline/files/timeline.js", "/timeline/files/bokeh.min.js"):
        answer = await http.get(path)
        assert answer.status_code == 200, path
        assert "script-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["none.js", "..%2Fpaths.py", "bokeh.js", "%2Fetc%2Fpasswd"])
async def test_nothing_but_the_files_of_the_page_is_served(http: httpx.AsyncClient, name: str) -> None:
    """No path leads out of the list."""
    assert (await http.get(f"/timeline/files/{name}")).status_code == 404


async def test_a_scheduler_that_keeps_none_is_told_apart(model_folder: Path) -> None:
    """The answer says what to set."""
    async with (
        compose_gateway(model_folder, scheduler=FakeScheduler(script=lambda _: ())) as gateway,
        serve_http(gateway) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        answer = await http.get("/timeline/spans")
    assert answer.status_code == 503
    assert "--keep-spans" in answer.json()["error"]["message"]
