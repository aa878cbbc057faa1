"""Meshes that stay up while runs alternate between them.

Knows which runs can share one: those at the same distance, with the same flags. Starts each when it is first wanted.
"""

import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from edgeweave.cli.mesh import Mesh
from edgeweave.settings import TlsSettings
from weaving.engines import Engines, options_for
from weaving.loads import BenchLoad
from weaving.places import Place
from weaving.variants import Variant

SITE_CORE = 0
CLIENT_NICENESS = 10


@dataclass(slots=True)
class Meshes:
    """Meshes of one kind of engines for one load; all of them end with the context.

    `tls` is what places with TLS use.
    """

    engines: Engines
    load: BenchLoad
    tls: TlsSettings | None = None
    _started: dict[object, Mesh] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        """Begin with none."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all that were started."""
        self._started.clear()
        await self._stack.aclose()

    async def mesh_for(self, variant: Variant, place: Place) -> Mesh:
        """Return the mesh for a variant at a place, started now if need be.

        Raises:
            EdgeweaveError: it did not start.
        """
        key = (place, variant.words)
        if key not in self._started:
            options = options_for(
                self.engines, self.load, place, edge_words=variant.words, tls=self.tls if place.has_tls else None
            )
            self._started[key] = await self._stack.enter_async_context(Mesh.start(options))
        return self._started[key]


@contextmanager
def on_site_core(*, is_pinned: bool) -> Iterator[None]:
    """Keep all threads of this process on the core of the site, as the parts of a pinned mesh are.

    Clients are no part of a site: there they give way to its engine and link.
    """
    if not is_pinned:
        yield
        return
    before = os.sched_getaffinity(0)
    _settle_threads({SITE_CORE}, niceness=CLIENT_NICENESS)
    try:
        yield
    finally:
        _settle_threads(before, niceness=0)


def _settle_threads(cores: set[int], *, niceness: int) -> None:
    for thread in Path("/proc/self/task").iterdir():
        # A thread may have ended meanwhile, and only root may become less nice again.
        with suppress(ProcessLookupError, PermissionError):
            os.sched_setaffinity(int(thread.name), cores)
            os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)
