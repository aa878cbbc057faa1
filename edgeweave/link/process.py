"""A link emulator as a child process, for tests and benches."""

import json
import signal
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Self

from edgeweave.child import child_command
from edgeweave.link.control import LinkControl
from edgeweave.link.stats import LinkStats


class LinkProcess:
    """Context manager: a link to `target` runs while it is entered, and clients connect to `address`.

    `flags` are more flags of the command, such as `{"--jitter-ms": 1}`.
    """

    def __init__(
        self,
        *,
        target: str,
        delay_ms: float,
        bandwidth_gbit: float = 10.0,
        listen: str = "127.0.0.1:0",
        flags: Mapping[str, object] | None = None,
    ) -> None:
        self._flags = {
            "--listen": listen,
            "--target": target,
            "--delay-ms": str(delay_ms),
            "--bandwidth-gbit": str(bandwidth_gbit),
            "--control": "127.0.0.1:0",
            **{name: str(value) for name, value in (flags or {}).items()},
        }
        self._child: subprocess.Popen[str] | None = None
        self._address = listen
        self._control = listen

    def __enter__(self) -> Self:
        """Start the process and wait until it listens.

        Raises:
            RuntimeError: it ended instead; its error is on standard error.
        """
        flags = [word for flag in self._flags.items() for word in flag]
        command = child_command("edgeweave.link", *flags)
        self._child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 (our own module)
        first_line = self._output.readline()
        if not first_line:
            self.__exit__(None, None, None)
            raise RuntimeError(f"the link to {self._flags['--target']} did not start; see its error above")
        told = json.loads(first_line)
        self._address, self._control = told["listening"], told["control"]
        return self

    @property
    def address(self) -> str:
        """Where clients connect, HOST:PORT."""
        return self._address

    @property
    def control_address(self) -> str:
        """Where the link takes changes, HOST:PORT; see `edgeweave.link.desk`."""
        return self._control

    def control(self) -> LinkControl:
        """Return what changes the link while it runs, for an `async with` block."""
        return LinkControl(self._control)

    @property
    def pid(self) -> int:
        """The process, for signals: SIGSTOP makes a silent link, SIGKILL a broken one."""
        return self._running.pid

    def read_stats(self) -> LinkStats:
        """Return what the link has carried so far."""
        self._running.send_signal(signal.SIGUSR1)
        return LinkStats(**json.loads(self._output.readline()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process, and with it every connection."""
        child = self._running
        child.send_signal(signal.SIGCONT)
        child.terminate()
        child.communicate()

    @property
    def _running(self) -> subprocess.Popen[str]:
        if self._child is None:
            raise RuntimeError("the link has not been entered; use it in a with statement")
        return self._child

    @property
    def _output(self) -> IO[str]:
        output = self._running.stdout
        if output is None:
            raise RuntimeError("the link was started without a pipe")
        return output
