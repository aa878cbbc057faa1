"""Several streams as one.

Knows fairness, errors and ends. Does not know what flows.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from edgeweave.errors import UnavailableError

ItemT = TypeVar("ItemT")


class _End:
    """A stream has ended, by `error` unless that is None."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class Merge(Generic[ItemT]):
    """Reads `streams` side by side; the first error of any ends all. `stopping` ends all, too."""

    def __init__(self, streams: Sequence[AsyncGenerator[ItemT, None]], *, stopping: asyncio.Event) -> None:
        self._streams = streams
        self._stopping = stopping
        # Bounded, so that a slow reader slows the streams down instead of filling memory.
        self._queue: asyncio.Queue[tuple[int, ItemT] | _End] = asyncio.Queue(maxsize=len(streams))

    async def items(self) -> AsyncGenerator[tuple[int, ItemT], None]:
        """Yield each item with the index of its stream; closing the generator closes all streams."""
        tasks = [asyncio.ensure_future(self._read(index)) for index in range(len(self._streams))]
        tasks.append(asyncio.ensure_future(self._watch_stop()))
        num_open = len(self._streams)
        try:
            while num_open:
                item = await self._queue.get()
                if not isinstance(item, _End):
                    yield item
                elif item.error is not None:
                    raise item.error
                else:
                    num_open -= 1
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, index: int) -> None:
        try:
            async with aclosing(self._streams[index]) as stream:
                async for item in stream:
                    await self._queue.put((index, item))
        except Exception as error:  # noqa: BLE001 - raised again where the items are read
            await self._queue.put(_End(error))
        else:
            await self._queue.put(_End())

    async def _watch_stop(self) -> None:
        await self._stopping.wait()
        await self._queue.put(_End(UnavailableError("the gateway is stopping; send the request again")))
