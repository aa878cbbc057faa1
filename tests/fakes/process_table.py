"""Which processes there are, for tests that end them."""

import os
import select
from collections.abc import Iterable
from pathlib import Path

_TIMEOUT_S = 10.0


def is_alive(pid: int) -> bool:
    """Return whether the process runs; one that has ended and was not waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def children_of(pid: int) -> list[int]:
    """Return the processes that the main thread of `pid` has started, in that order."""
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(word) for word in words]


def until_gone(pids: Iterable[int]) -> None:
    """Wait until every process has ended; AssertionError names one that does not."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        is_gone = bool(select.select([descriptor], [], [], _TIMEOUT_S)[0])
        os.close(descriptor)
        assert is_gone, f"process {pid} is left"
