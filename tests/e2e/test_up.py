"""`edgeweave up` with the real services."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.process_table import children_of, until_gone
from fakes.processes import addresses_of, assert_free

COMMAND = [sys.executable, "-m", "edgeweave.cli", "up", "--port", "0", "--rtt-ms", "1"]


class Up:
    """`edgeweave up` as a process of its own; `folder` is where it may put temporary files."""

    def __init__(self, model: Path, *flags: str, folder: Path) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [*COMMAND, "--model", str(model), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(folder)},
        )

    def until_serving(self) -> list[int]:
        """Wait until the mesh serves and return the numbers of its processes."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if "serves after" in line:
                return children_of(self.process.pid)
        raise AssertionError("".join(lines))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder for temporary files, which is empty afterwards."""
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_an_orderly_end(model: Path, folder: Path) -> None:
    """Ctrl-C stops every process of a centralized mesh with exit code 0; nothing is left of it."""
    up = Up(model, "--centralized", folder=folder)
    children = up.until_serving()
    assert len(children) == 3
    addresses = [address for pid in children for address in addresses_of(pid)]
    up.process.send_signal(signal.SIGINT)
    output, _ = up.process.communicate(timeout=20)
    assert (up.process.returncode, output.strip()) == (0, "stopped")
    until_gone(children)
    assert_free(addresses)


def test_nothing_outlives_a_killed_up(model: Path, folder: Path) -> None:
    """SIGKILL of `up` itself, which can stop nothing any more, leaves no process, no port and no temporary file."""
    up = Up(model, folder=folder)
    children = up.until_serving()
    assert len(children) == 5
    addresses = [address for pid in children for address in addresses_of(pid)]
    up.process.kill()
    up.process.communicate()
    until_gone(children)
    assert_free(addresses)
