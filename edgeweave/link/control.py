"""Asking a running link to change: a client of its control port.

Knows the lines of JSON that `desk` reads. An answer means that the change is in force.
"""

import asyncio
import json
from types import TracebackType
from typing import Any, Self

from edgeweave.errors import InvalidSettingsError, UnavailableError
from edgeweave.settings.values import host_and_port


class LinkControl:
    """A connection to the control port of a link, for the time of an `async with` block.

    Each method returns when the change is in force. They raise InvalidSettingsError if the link refuses, and
    UnavailableError if it is gone.
    """

    def __init__(self, address: str, *, timeout_s: float = 5.0) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Connect; UnavailableError if no link listens there."""
        host, port = host_and_port(self._address)
        try:
            async with asyncio.timeout(self._timeout_s):
                self._streams = await asyncio.open_connection(host, port)
        except OSError as error:
            raise UnavailableError(
                f"no link answers at {self._address}: {error}; was it started with --control?"
            ) from error
        return self

    async def set(self, **values: float) -> None:
        """Change what is named: distance_km, delay_ms, bandwidth_gbit, jitter_ms, stalls_per_s, stall_ms."""
        await self._ask({"set": values})

    async def stall(self, ms: float) -> None:
        """Let nothing leave for so long, from now."""
        await self._ask({"stall": {"ms": ms}})

    async def cut(self) -> None:
        """Reset all connections and refuse new ones, until `restore`."""
        await self._ask("cut")

    async def restore(self) -> None:
        """Take connections again."""
        await self._ask("restore")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection; the link stays as it is."""
        if self._streams is not None:
            self._streams[1].close()

    async def _ask(self, words: Any) -> None:
        if self._streams is None:
            raise RuntimeError("the control has not been entered; use it in an async with statement")
        reader, writer = self._streams
        try:
            async with self._turn, asyncio.timeout(self._timeout_s):
                writer.write(f"{json.dumps(words)}\n".encode())
                line = await reader.readline()
        except OSError as error:
            raise self._gone() from error
        if not line:
            raise self._gone()
        answer = json.loads(line)
        if "error" in answer:
            raise InvalidSettingsError(f"link at {self._address}: {answer['error']}")

    def _gone(self) -> UnavailableError:
        return UnavailableError(f"the link at {self._address} is gone; see its standard error")
