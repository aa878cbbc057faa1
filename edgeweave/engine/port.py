"""How a runner on the compute thread reaches the streams on the event loop.

Knows the two threads and nothing of what crosses between them.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.nouns import (
    Attached,
    ChunkDone,
    Lane,
    LanesReady,
    Released,
    StepDone,
    Timeline,
    UnitFailed,
)
from edgeweave.wire.frames import Frame, Payload

Report = Attached | LanesReady | ChunkDone | StepDone | Released | UnitFailed | Timeline


class SessionBorder(Protocol):
    """The session on the event loop. Its methods belong to the loop."""

    def tell(self, report: Report) -> None:
        """Send a report to the scheduler."""
        ...

    def send(self, lane: Lane, unit: Frame, payload: Payload) -> None:
        """Send the rows in `payload` on a lane; `unit` says which they are."""
        ...

    def drop(self, lane: Lane, unit: int) -> None:
        """Forget what is staged or unsent of a unit."""
        ...

    def end(self, reason: EdgeweaveError) -> None:
        """End the session."""
        ...


class Port:
    """Calls the border of a session from the compute thread, in order, without waiting."""

    def __init__(self, border: SessionBorder, *, loop: asyncio.AbstractEventLoop) -> None:
        self._border = border
        self._loop = loop

    @classmethod
    def of(cls, border: SessionBorder) -> "Port":
        """Return a port to `border` on the event loop that runs now."""
        return cls(border, loop=asyncio.get_running_loop())

    def tell(self, report: Report) -> None:
        """Send a report to the scheduler."""
        self._call(lambda: self._border.tell(report))

    def send(self, lane: Lane, unit: Frame, payload: Payload) -> None:
        """Send the rows in `payload` on a lane. The payload must not change any more."""
        self._call(lambda: self._border.send(lane, unit, payload))

    def drop(self, lane: Lane, unit: int) -> None:
        """Forget what is staged or unsent of a unit."""
        self._call(lambda: self._border.drop(lane, unit))

    def end(self, reason: EdgeweaveError) -> None:
        """End the session."""
        self._call(lambda: self._border.end(reason))

    def _call(self, call: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)
