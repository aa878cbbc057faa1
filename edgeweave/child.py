"""Programs that do not outlive whoever started them.

A child that is killed with its parent has to ask the kernel for that itself, before it does anything else. Doing so
between fork and exec in the parent is not safe beside threads, so a first program does it and then becomes the wanted
one. Knows Linux; does not know what it starts.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def child_command(module: str, *arguments: str, core: int | None = None, niceness: int = 0) -> list[str]:
    """Return the command that runs `python -m module` as a child of this process, on one CPU core if asked.

    With a `niceness` it gives way to others on the same core.

    The child gets SIGKILL when the thread that starts it ends, so start it from one that lives long enough.
    """
    chosen = ("any" if core is None else str(core), str(niceness))
    return [sys.executable, "-m", __name__, str(os.getpid()), *chosen, module, *arguments]


def become(argv: Sequence[str]) -> None:
    """Turn into the program that `child_command` named; return only if the parent is gone already."""
    parent, core, niceness, *rest = argv
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        return
    if core != "any":
        os.sched_setaffinity(0, {int(core)})
    os.nice(int(niceness))
    os.execv(sys.executable, [sys.executable, "-m", *rest])  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    become(sys.argv[1:])
