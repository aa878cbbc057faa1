"""A mesh of real processes for tests, and its parts by name: started with other flags, ended, started again.

Everything starts through the same code as `edgeweave up`. A part that is replaced listens where the one before it
did, so that the others find it.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from edgeweave import Client
from edgeweave.child import child_command
from edgeweave.cli.mesh import Mesh
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.cli.readiness import until_page
from edgeweave.cli.service_process import ServiceProcess
from edgeweave.client import MeshState, SessionState
from edgeweave.errors import UnavailableError

Flags = Mapping[str, object]

_QUICK_RETRIES = ("--connect-backoff-s", "0.05", "--max-connect-backoff-s", "0.2", "--drain-s", "5")
_INTERVAL_S = 0.02
_END_TIMEOUT_S = 15.0
_READY_TIMEOUT_S = 40.0


class ProcessMesh:
    """Five processes and a client of their scheduler."""

    def __init__(self, mesh: Mesh, client: Client) -> None:
        self.client = client
        self.url = mesh.url
        self.scheduler_address = mesh.scheduler_address
        self._processes = dict(mesh.processes)

    def __getitem__(self, name: str) -> ServiceProcess:
        """Return the process that runs as part `name` now."""
        return self._processes[name]

    async def state(self) -> MeshState:
        """Return the present state."""
        async for state in self.client.watch_mesh(interval_s=_INTERVAL_S):
            return state
        raise AssertionError("the scheduler ended the stream of states")

    async def serving(self, *, after: int = 0) -> MeshState:
        """Wait for a session with a number above `after` that serves, and return the state then."""
        async with asyncio.timeout(_READY_TIMEOUT_S):
            while True:
                try:
                    async for state in self.client.watch_mesh(interval_s=_INTERVAL_S):
                        if state.state is SessionState.READY and state.session > after:
                            return state
                except UnavailableError:  # the scheduler itself is starting
                    await asyncio.sleep(_INTERVAL_S)

    async def serving_http(self, *, after: int = 0) -> None:
        """Wait until the gateway says that a session with a number above `after` serves."""
        await self.serving(after=after)
        async with asyncio.timeout(_READY_TIMEOUT_S):
            await until_page(f"{self.url}/ready")

    async def free(self, *, timeout_s: float = 10.0) -> MeshState:
        """Wait until no request is open and all blocks of both sides are free, and return the state then."""
        async with asyncio.timeout(timeout_s):
            async for state in self.client.watch_mesh(interval_s=0.01):
                sides = [side for side in (state.edge, state.cloud) if side is not None]
                is_idle = not (state.num_waiting or state.num_running or state.num_releasing or state.num_chunks)
                if is_idle and all(side.num_free_blocks == side.num_blocks for side in sides):
                    return state
        raise AssertionError("the scheduler ended the stream of states")

    async def end(self, *names: str) -> None:
        """End parts by SIGTERM; AssertionError if one does not end well."""
        for name in names:
            self[name].send_signal(signal.SIGTERM)
        codes = await asyncio.wait_for(asyncio.gather(*(self[name].wait() for name in names)), _END_TIMEOUT_S)
        assert codes == [0] * len(names), [self[name].ending for name in names]

    async def kill(self, name: str) -> None:
        """End a part by SIGKILL."""
        self[name].send_signal(signal.SIGKILL)
        await asyncio.wait_for(self[name].wait(), _END_TIMEOUT_S)

    @asynccontextmanager
    async def replaced(self, **parts: Flags) -> AsyncIterator[None]:
        """Run parts with flags added, in new sessions, for the time of the block.

        Args:
            parts: for the name of a part its flags, such as `link={"delay_ms": 5}`.
        """
        before = {name: self[name] for name in parts}
        others = {name: _with_flags(self[name], flags) for name, flags in parts.items()}
        await self._swap(others)
        try:
            yield
        finally:
            await self._swap(before)

    async def _swap(self, processes: Mapping[str, ServiceProcess]) -> None:
        has_part_of_session = set(processes) != {"gateway"}
        session = (await self.state()).session if has_part_of_session else 0
        await self.end(*processes)
        self._processes |= processes
        for process in processes.values():
            await process.start()
        await self.serving(after=session)

    async def stop_replacements(self, mesh: Mesh) -> None:
        """Kill what the mesh does not know of."""
        for name, process in self._processes.items():
            if process is not mesh.processes[name]:
                process.send_signal(signal.SIGKILL)
                await process.wait()


@asynccontextmanager
async def process_mesh(
    model: Path, *, rtt_ms: float, flags: Mapping[str, Sequence[str]] | None = None
) -> AsyncIterator[ProcessMesh]:
    """Run a mesh until the block ends; it is ready when the block begins.

    Args:
        model: folder of the model.
        rtt_ms: round trip of the link.
        flags: more flags for a service.
    """
    given = flags or {}
    options = MeshOptions(
        model=model,
        port=0,
        rtt_ms=rtt_ms,
        extra_flags={**given, "scheduler": [*_QUICK_RETRIES, *given.get("scheduler", ())]},
    )
    async with AsyncExitStack() as stack:
        mesh = await stack.enter_async_context(Mesh.start(options))
        addresses = [address for process in mesh.processes.values() for address in addresses_of(process.pid)]
        client = await stack.enter_async_context(Client(mesh.scheduler_address))
        processes = ProcessMesh(mesh, client)
        try:
            yield processes
        finally:
            await processes.stop_replacements(mesh)
    assert {process.ending for process in mesh.processes.values()} == {
        f"{name} ended with exit code 0" for name in mesh.processes
    }
    assert_free(addresses)


def addresses_of(pid: int) -> list[str]:
    """Return where the service with this process number listens, by its flags."""
    flags = _flags_in(_command_line(pid))
    return [flags["--listen"]] if "--listen" in flags else [f"127.0.0.1:{flags['--port']}"]


def assert_free(addresses: Sequence[str]) -> None:
    """Raise OSError if something listens at one of `addresses`."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        socket.create_server((host, int(port))).close()


def flags_of(process: ServiceProcess) -> dict[str, str]:
    """Return the flags that a running part was started with, the last of each."""
    return _flags_in(_command_line(process.pid))


def _with_flags(process: ServiceProcess, flags: Flags) -> ServiceProcess:
    module, *words = _command_line(process.pid)[2:]
    added = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return ServiceProcess(process.name, command=child_command(module, *words, *added))


def _flags_in(words: Sequence[str]) -> dict[str, str]:
    return dict(zip(words[3::2], words[4::2], strict=True))


def _command_line(pid: int) -> list[str]:
    """Return the words of `python -m module flags`."""
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")[:-1]
    assert words[:2] == [sys.executable, "-m"], words
    return words
