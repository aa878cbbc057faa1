"""The page that tells the life of a request tells the truth."""

import importlib
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
import pytest

from fakes.gateway import compose_gateway, serve_http
from fakes.real_mesh import MeshShape, real_mesh
from fakes.scheduler import FakeScheduler
from models.served import served_model

PAGE = Path(__file__).parents[3] / "docs" / "lifecycle.md"


def functions_of_the_page() -> list[str]:
    """Return the ten functions, in the order of the page."""
    return re.findall(r"^\| \d+ \| \w+ \| `([\w.]+)` \|", PAGE.read_text(), re.MULTILINE)


def resolve(name: str) -> Callable[..., Any]:
    """Return the function that a dotted name stands for."""
    module, owner, function = name.rsplit(".", 2)
    found: Callable[..., Any] = inspect.unwrap(getattr(getattr(importlib.import_module(module), owner), function))
    return found


def next_of(name: str) -> str | None:
    """Return what the docstring of a function says comes next."""
    match = re.search(r"Next: ([\w.]+)\s*$", inspect.getdoc(resolve(name)) or "")
    return match.group(1) if match else None


def test_each_function_names_the_next() -> None:
    """Walking the docstrings from the first function gives the ten of the page."""
    walked: list[str] = []
    name: str | None = functions_of_the_page()[0]
    while name is not None:
        walked.append(name)
        name = next_of(name)
    assert walked == functions_of_the_page()
    assert len(walked) == 10


@contextmanager
def calls_recorded(names: list[str]) -> Iterator[list[str]]:
    """Record which of the named functions are entered, on every thread that starts inside."""
    codes: dict[CodeType, str] = {resolve(name).__code__: name for name in names}
    calls: list[str] = []

    def record(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in codes:
            calls.append(codes[frame.f_code])

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def is_in_order(wanted: list[str], calls: list[str]) -> bool:
    """Whether `wanted` is a subsequence of `calls`."""
    remaining = iter(calls)
    return all(name in remaining for name in wanted)


async def test_a_request_crosses_the_ten_functions_in_order() -> None:
    """One chat request over HTTP, through gateway, scheduler, edge and cloud, enters all ten in the page's order."""
    names = functions_of_the_page()
    with calls_recorded(names) as calls:
        async with (
            real_mesh(MeshShape(served_model())) as mesh,
            compose_gateway(served_model(), scheduler=FakeScheduler(lambda _: ()), behind=mesh.target) as gw,
            serve_http(gw) as url,
            httpx.AsyncClient(base_url=url, timeout=20) as http,
        ):
            calls.clear()
            body = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
            response = await http.post("/v1/chat/completions", json=body)
            assert response.status_code == 200, response.text
    assert is_in_order(names, calls), calls
    assert set(calls) == set(names)


@pytest.mark.parametrize("leave_out", range(10))
def test_the_check_of_the_order_can_fail(leave_out: int) -> None:
    """A sequence of calls that lacks any one function, or has two swapped, is not in order."""
    names = functions_of_the_page()
    assert not is_in_order(names, names[:leave_out] + names[leave_out + 1 :])
    swapped = names.copy()
    swapped[leave_out], swapped[leave_out - 1] = swapped[leave_out - 1], swapped[leave_out]
    assert not is_in_order(names, swapped)
