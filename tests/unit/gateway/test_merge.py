"""Several streams as one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from edgeweave.errors import UnavailableError
from edgeweave_gateway.merge import Merge


class Stream:
    """A stream that counts what was read and knows whether it was closed."""

    def __init__(self, num_items: int, *, error: Exception | None = None, endless: bool = False) -> None:
        self.num_read = 0
        self.closed = False
        self._num_items = num_items
        self._error = error
        self._endless = endless

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            for item in range(self._num_items):
                self.num_read += 1
                yield item
            if self._endless:
                await asyncio.Event().wait()
            if self._error:
                raise self._error
        finally:
            self.closed = True


def merge(*streams: Stream, stopping: asyncio.Event | None = None) -> AsyncGenerator[tuple[int, int], None]:
    return Merge([stream.items() for stream in streams], stopping=stopping or asyncio.Event()).items()


async def test_each_item_once_and_in_order() -> None:
    """Every item comes once, with the index of its stream, in the order of its stream."""
    items = [item async for item in merge(Stream(3), Stream(0), Stream(2))]
    assert sorted(items) == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)]
    assert [item for item in items if item[0] == 0] == [(0, 0), (0, 1), (0, 2)]


async def test_error_closes_the_others() -> None:
    """The error of one stream is raised as it is, and the others are closed."""
    waiting = Stream(1, endless=True)
    with pytest.raises(KeyError, match="broken"):
        _ = [item async for item in merge(waiting, Stream(1, error=KeyError("broken")))]
    assert waiting.closed


async def test_closing_closes_all() -> None:
    """Closing the merged stream closes every stream, those that wait among them."""
    streams = [Stream(1, endless=True), Stream(9)]
    async with aclosing(merge(*streams)) as merged:
        await anext(merged)
    assert all(stream.closed for stream in streams)


async def test_slow_reader() -> None:
    """Streams are not read far ahead of whoever reads the merged one."""
    fast = Stream(1000)
    async with aclosing(merge(fast)) as merged:
        for _ in range(3):
            await anext(merged)
        for _ in range(50):
            await asyncio.sleep(0)
        assert fast.num_read <= 6


async def test_stopping() -> None:
    """When the gateway stops, streams that wait end with an error."""
    stopping = asyncio.Event()
    waiting = Stream(1, endless=True)
    merged = merge(waiting, stopping=stopping)
    await anext(merged)
    stopping.set()
    with pytest.raises(UnavailableError, match="stopping"):
        await anext(merged)
    assert waiting.closed
