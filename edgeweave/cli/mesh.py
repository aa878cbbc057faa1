"""A mesh of real processes on one machine: four services, and the link between site and cloud.

Knows the order of starting and stopping, and who has ended. Does not know what is asked of the mesh.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import NoReturn

from edgeweave.cli.folders import made_folder
from edgeweave.cli.mesh_commands import LINK, LOOPBACK, MeshCommands, mesh_commands
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.cli.readiness import until_page, until_serving
from edgeweave.cli.service_process import ServiceProcess
from edgeweave.errors import InvalidSettingsError, UnavailableError
from edgeweave.link import LinkControl

Tell = Callable[[str, str], None]
"""Called with the name of a part and a line about it."""

_STOPPING_ORDER = (("gateway",), ("scheduler",), ("edge", "cloud"), (LINK,))
_SHOWN_LINES = 15
_USER_ERROR = 2
"""Exit code of a part that the user has to change something for."""


class Mesh:
    """The processes of a mesh that is ready. Made by `start`.

    A process that ends is not started again, and takes nothing down: `first_end` says so to whoever wants to know.
    """

    def __init__(self, commands: MeshCommands, processes: Mapping[str, ServiceProcess]) -> None:
        self._commands = commands
        self.processes = processes

    @classmethod
    @asynccontextmanager
    async def start(
        cls, options: MeshOptions, *, tell: Tell | None = None, on_line: Tell | None = None
    ) -> AsyncIterator["Mesh"]:
        """Start a mesh, and enter when it is ready; stop it on leaving, whatever the reason.

        Args:
            options: what the mesh is to be.
            tell: told what becomes of each part.
            on_line: told each line of output of each part.

        Raises:
            InvalidSettingsError, ModelNotFoundError: something is wrong that is seen before anything runs, or a part
                said so and ended with exit code 2.
            UnavailableError: a part ended, or the deadline passed; with the last lines of the part that is to blame.
        """
        commands = mesh_commands(options, os.environ)
        if options.log_dir is not None:
            made_folder(options.log_dir, flag="--log-dir")
        processes = {
            name: ServiceProcess(
                name,
                command=command,
                log_path=options.log_dir and options.log_dir / f"{name}.log",
                on_line=on_line and _bound(on_line, name),
            )
            for name, command in commands.commands.items()
        }
        mesh = cls(commands, processes)
        try:
            for process in processes.values():
                await process.start()
            await mesh._until_ready(deadline_s=options.start_deadline_s, tell=tell)
            yield mesh
        finally:
            await mesh._stop(grace_s=options.stop_deadline_s)

    @property
    def url(self) -> str:
        """Where clients reach the gateway; RuntimeError in a mesh without one."""
        gateway = self._commands.gateway
        if gateway is None:
            raise RuntimeError("this mesh was started without a gateway; ask its scheduler by the SDK")
        host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(gateway.host, gateway.host)  # noqa: S104 (read, not bound)
        return f"http://{f'[{host}]' if ':' in host else host}:{gateway.port}"

    @property
    def scheduler_address(self) -> str:
        """Where the SDK reaches the scheduler, HOST:PORT."""
        return self._commands.scheduler.listen

    def link_control(self) -> LinkControl:
        """Return what changes the link while the mesh runs; RuntimeError in a mesh without one."""
        if self._commands.link_control is None:
            raise RuntimeError("this mesh is in one place and has no link")
        return LinkControl(self._commands.link_control)

    async def first_end(self) -> ServiceProcess:
        """Wait until any process ends, and return it."""
        waits = {asyncio.create_task(process.wait()): process for process in self.processes.values()}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
        return waits[done.pop()]

    async def _until_ready(self, *, deadline_s: float, tell: Tell | None) -> None:
        """Wait until every part says that it is ready."""
        begin_s = time.monotonic()
        pending = set(self.processes)

        async def until_ready(name: str, wait: Coroutine[object, object, object]) -> None:
            await wait
            pending.discard(name)
            if tell is not None:
                tell(name, f"ready after {time.monotonic() - begin_s:.1f} s")

        async def all_ready() -> None:
            await asyncio.gather(*(until_ready(name, wait) for name, wait in self._waits().items()))

        ready = asyncio.create_task(all_ready())
        end = asyncio.create_task(self.first_end())
        try:
            await asyncio.wait([ready, end], timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                await _raise_ending(end.result())
            if not ready.done():
                late = [process for name, process in self.processes.items() if name in pending]
                _blame(f"not ready after {deadline_s:g} s: {', '.join(process.name for process in late)}", late[0])
            ready.result()
        finally:
            ready.cancel()
            end.cancel()
            await asyncio.gather(ready, end, return_exceptions=True)

    def _waits(self) -> dict[str, Coroutine[object, object, object]]:
        commands = self._commands
        waits: dict[str, Coroutine[object, object, object]] = {
            settings.section: until_serving(settings.listen, service=settings.section, tls=settings.tls)
            for settings in (commands.cloud, commands.edge, commands.scheduler)
            if settings is not None
        }
        if LINK in self.processes:
            waits[LINK] = self.processes[LINK].first_line()
        if commands.gateway is not None:
            waits["gateway"] = until_page(f"{self.url}/ready")
        return waits

    async def _stop(self, *, grace_s: float) -> None:
        """End all processes, those that depend on others first; kill what is left when the grace is over."""
        running = {name: process for name, process in self.processes.items() if process.is_running}
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._stop_in_order(running)
        finally:
            for process in running.values():
                process.send_signal(signal.SIGKILL)
            await asyncio.gather(*(process.wait() for process in running.values()))

    async def _stop_in_order(self, running: Mapping[str, ServiceProcess]) -> None:
        for stage in _STOPPING_ORDER:
            processes = [running[name] for name in stage if name in running]
            for process in processes:
                process.send_signal(signal.SIGTERM)
            await asyncio.gather(*(process.wait() for process in processes))


def _bound(on_line: Tell, name: str) -> Callable[[str], None]:
    return lambda line: on_line(name, line)


async def _raise_ending(process: ServiceProcess) -> NoReturn:
    """Raise why a part ended while the mesh was starting: in its own words where it says that the user is mistaken."""
    if await process.wait() == _USER_ERROR and process.lines:
        raise InvalidSettingsError(process.lines[-1])
    _blame(f"{process.ending} while the mesh was starting", process)


def _blame(what: str, process: ServiceProcess) -> NoReturn:
    shown = "\n".join(f"  {line}" for line in process.lines[-_SHOWN_LINES:]) or "  (nothing)"
    raise UnavailableError(f"{what}; the last lines of {process.name}:\n{shown}")
