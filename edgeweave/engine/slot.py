"""Which session an engine serves: one at a time, the highest number wins.

Knows that a higher number evicts a lower one at once: nobody else would free the KV behind a connection that broke on
one side only. Does not know what a session is made of.
"""

import asyncio
from collections.abc import Callable

import structlog

from edgeweave.engine.session import EngineSession
from edgeweave.errors import EdgeweaveError, SessionLostError, StaleSessionError, UnavailableError

_log = structlog.get_logger(__name__)


class SessionSlot:
    """The place for one session. Belongs to the event loop."""

    def __init__(self) -> None:
        self._session: EngineSession | None = None
        self._site: bytes | None = None
        self._highest = 0
        self._leaving: asyncio.Task[None] | None = None
        self._vacant = asyncio.Event()
        self._vacant.set()

    async def attach(self, number: int, *, site: bytes, create: Callable[[], EngineSession]) -> EngineSession:
        """Take the place for session `number`, after the one before is gone and has freed everything.

        Raises:
            StaleSessionError: the number is not higher than one that was here; both are named.
            UnavailableError: another site is served.
        """
        self._check(number, site)
        self._highest, self._site = number, site
        if self._session is not None:
            self._session.end(SessionLostError(f"session {self._session.number} was followed by session {number}"))
            await self._vacant.wait()
        if number != self._highest:
            raise StaleSessionError(f"session {number} was followed by session {self._highest} while it attached")
        self._session = create()
        self._vacant.clear()
        self._leaving = asyncio.create_task(self._leave_at_end(self._session))
        _log.info("session_attached", session=number)
        return self._session

    def current(self, number: int) -> EngineSession:
        """Return the session that is served.

        Raises:
            StaleSessionError: it has another number; both are named.
        """
        served = self._session.number if self._session is not None else "none"
        if self._session is None or self._session.number != number:
            raise StaleSessionError(f"session {number} is not served here, the present one is {served}")
        return self._session

    async def idle(self) -> None:
        """Return when no session is served."""
        await self._vacant.wait()

    def end(self, reason: EdgeweaveError) -> None:
        """End the session that is served, if any."""
        if self._session is not None:
            self._session.end(reason)

    async def _leave_at_end(self, session: EngineSession) -> None:
        """Give the place back once `session` has ended and everything of it is free."""
        await session.freed()
        self._session = None
        self._vacant.set()

    def _check(self, number: int, site: bytes) -> None:
        if self._session is not None and self._site != site:
            raise UnavailableError("this engine serves another site now; give each site a cloud engine of its own")
        if number <= self._highest and self._site == site:
            raise StaleSessionError(f"session {number} comes after session {self._highest}; numbers have to rise")
