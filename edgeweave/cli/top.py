"""`edgeweave top`: what a mesh does now, on a terminal or as figures, until Ctrl-C.

Knows how a scheduler is found and watched, and what happens when it goes away. What is shown is made elsewhere.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live

from edgeweave.cli.site_address import dialled
from edgeweave.cli.top_figures import figures
from edgeweave.cli.top_interval import MeshInterval, interval_between
from edgeweave.cli.top_view import interval_view, waiting_view
from edgeweave.client import Client, MeshState, SessionState
from edgeweave.errors import EdgeweaveError, ProtocolError, UnavailableError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE_S = 5.0
"""A scheduler that takes this much longer than the interval is away."""
_DOWN = 1


@dataclass(frozen=True, slots=True)
class TopOptions:
    """What is asked for. What is None is left to the settings file, the variables and the defaults."""

    scheduler: str | None = None
    tls_ca_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    config: Path | None = None
    interval_s: float = 2.0
    is_once: bool = False
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class Away:
    """The scheduler does not answer, and is asked again."""

    reason: str


Seen = MeshInterval | Away


async def run_top(options: TopOptions, *, console: Console, warnings: Console) -> int:
    """Show what a mesh does, until a signal, or for one interval; return the exit code, 1 where the mesh is down.

    Raises:
        InvalidSettingsError: a setting is wrong, or a TLS file cannot be used.
        UnavailableError: `is_once`, and the scheduler does not answer.
    """
    settings = dialled(options, os.environ)
    async with Client(settings.scheduler, tls=settings.tls) as client:
        if options.is_once:
            async with aclosing(intervals(client, interval_s=options.interval_s)) as seen:
                interval = await anext(seen)
            _print(interval, options, console=console, target=settings.scheduler)
            return 0 if interval.state.state in {SessionState.READY, SessionState.DRAINING} else _DOWN
        showing = asyncio.create_task(
            _show(client, options, console=console, warnings=warnings, target=settings.scheduler)
        )
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, showing.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await showing
    return 0


async def watch(client: Client, *, interval_s: float) -> AsyncGenerator[Seen, None]:
    """Yield one interval of the mesh after the other; while the scheduler is away, why, again and again.

    Raises:
        ProtocolError: the scheduler is of another version.
    """
    while True:
        try:
            async with aclosing(intervals(client, interval_s=interval_s)) as seen:
                async for interval in seen:
                    yield interval
        except ProtocolError:
            raise
        except EdgeweaveError as error:
            yield Away(str(error))
        await asyncio.sleep(interval_s)


async def intervals(client: Client, *, interval_s: float) -> AsyncGenerator[MeshInterval, None]:
    """Yield one interval of the mesh after the other.

    Raises:
        UnavailableError: the scheduler does not answer, or not any more.
    """
    before: MeshState | None = None
    async with aclosing(client.watch_mesh(interval_s=interval_s)) as states:
        while True:
            try:
                async with asyncio.timeout(interval_s + _PATIENCE_S):
                    state = await anext(states)
            except (TimeoutError, StopAsyncIteration):
                raise UnavailableError("the scheduler stopped telling the state of the mesh") from None
            if before is not None:
                yield interval_between(before, state)
            before = state


async def _show(client: Client, options: TopOptions, *, console: Console, warnings: Console, target: str) -> None:
    async with aclosing(watch(client, interval_s=options.interval_s)) as seen:
        if options.is_json or not console.is_terminal:
            async for each in seen:
                if isinstance(each, Away):
                    warnings.print(each.reason, highlight=False, markup=False, soft_wrap=True)
                else:
                    _print(each, options, console=console, target=target)
            return
        with Live(waiting_view(None, target=target), console=console, screen=True, auto_refresh=False) as live:
            async for each in seen:
                live.update(_view(each, target=target), refresh=True)


def _view(seen: Seen, *, target: str) -> RenderableType:
    return waiting_view(seen.reason, target=target) if isinstance(seen, Away) else interval_view(seen, target=target)


def _print(interval: MeshInterval, options: TopOptions, *, console: Console, target: str) -> None:
    if options.is_json:
        console.print(json.dumps(figures(interval)), highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(interval_view(interval, target=target))
