"""One service as a child process: what it writes, and how it ends.

Knows signals and output. Does not know what the service does, nor when it is ready.
"""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

_KEPT_LINES = 200
_READ_BYTES = 64 << 10


class ServiceProcess:
    """A command that runs until it ends or is told to. It gets no signals from the terminal, only from here.

    Args:
        name: how it is called in messages.
        command: program and arguments.
        log_path: file that its output is appended to as well.
        on_line: called with each line of its output.
    """

    def __init__(
        self,
        name: str,
        *,
        command: Sequence[str],
        log_path: Path | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self._command = command
        self._log_path = log_path
        self._on_line = on_line
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._has_line = asyncio.Event()
        self._child: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the command; also again, once it has ended."""
        if self.is_running:
            raise RuntimeError(f"{self.name} runs already, as process {self.pid}")
        self._lines.clear()
        self._has_line.clear()
        self._child = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        """Number of the process that was started last."""
        return self._started.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.returncode is None

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines that it wrote, errors among them."""
        return tuple(self._lines)

    async def first_line(self) -> str:
        """Wait for the first line that it writes, and return it."""
        await self._has_line.wait()
        return self._lines[0]

    async def wait(self) -> int:
        """Wait for its end, and return its exit code: negative if a signal ended it."""
        code = await self._started.wait()
        if self._reading is not None:
            await asyncio.shield(self._reading)  # who stops waiting does not stop the reading
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.is_running:
            with contextlib.suppress(ProcessLookupError):
                self._started.send_signal(number)

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self._started.returncode
        if code is None:
            return f"{self.name} runs"
        if code < 0:
            return f"{self.name} was ended by {signal.Signals(-code).name}"
        return f"{self.name} ended with exit code {code}"

    @property
    def _started(self) -> asyncio.subprocess.Process:
        if self._child is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._child

    async def _read(self) -> None:
        output = self._started.stdout
        if output is None:
            raise RuntimeError(f"{self.name} was started without a pipe")
        with contextlib.ExitStack() as closing:
            log = None if self._log_path is None else closing.enter_context(self._log_path.open("a", encoding="utf-8"))
            async for line in _lines_of(output):
                self._lines.append(line)
                self._has_line.set()
                if log is not None:
                    log.write(f"{line}\n")
                    log.flush()
                if self._on_line is not None:
                    self._on_line(line)


async def _lines_of(output: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield lines of any length, the last one also without its end."""
    rest = b""
    while content := await output.read(_READ_BYTES):
        *lines, rest = (rest + content).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")
