"""Whether the mesh behind the gateway serves.

Knows the newest state that the scheduler told, and goes on asking. Does not know why the mesh is as it is.
"""

import asyncio
from contextlib import aclosing
from types import TracebackType
from typing import Self

import structlog

from edgeweave.client import Client, MeshState, SessionState
from edgeweave.errors import EdgeweaveError

_log = structlog.get_logger(__name__)


class Readiness:
    """Watches the mesh while it is open: an asynchronous context manager."""

    def __init__(self, client: Client, *, interval_s: float = 1.0, retry_s: float = 1.0) -> None:
        self._client = client
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._task: asyncio.Task[None] | None = None
        self._mesh: MeshState | None = None
        self._reason: str | None = "the scheduler has not answered yet"
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def reason(self) -> str | None:
        """Why no request would be served now; None: requests are served."""
        return self._reason

    @property
    def max_seq_len(self) -> int | None:
        """Most tokens of prompt and output together that the mesh has room for, where it has said so."""
        return self._mesh.max_seq_len if self._mesh is not None else None

    async def news(self) -> None:
        """Return when the scheduler tells the state of the mesh again, or stops telling it."""
        await self._news.wait()

    async def _watch(self) -> None:
        while True:
            try:
                async with aclosing(self._client.watch_mesh(interval_s=self._interval_s)) as states:
                    async for mesh in states:
                        self._mesh = mesh
                        self._note(_reason_of(mesh))
                self._note("the scheduler stopped telling the state of the mesh")
            except EdgeweaveError as error:
                self._note(str(error))
            await asyncio.sleep(self._retry_s)

    def _note(self, reason: str | None) -> None:
        if reason != self._reason:
            _log.info("readiness_changed", ready=reason is None, reason=reason)
        self._reason = reason
        self._news.set()
        self._news = asyncio.Event()


def _reason_of(mesh: MeshState) -> str | None:
    if mesh.state is SessionState.READY:
        return None
    return f"the mesh is {mesh.state.name.lower()}: {mesh.reason or 'its engines are being attached'}"
