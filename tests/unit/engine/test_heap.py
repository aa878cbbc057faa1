"""Memory that stays with the process."""

import platform
import resource
import subprocess
import sys

import pytest

from edgeweave.engine.heap import keep_freed_memory

_PROGRAM = """
import resource, sys, threading
from edgeweave.engine.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        blocks = [bytearray(8 << 20) for _ in range(4)]
        del blocks
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if sys.argv[1] == "kept":
    keep_freed_memory()
thread = threading.Thread(target=faults)
thread.start()
thread.join()
"""


def faults(word: str) -> int:
    """Pages that a thread gets from the system while it takes and frees the same blocks again and again."""
    given = subprocess.run([sys.executable, "-c", _PROGRAM, word], capture_output=True, text=True, check=True)  # noqa: S603
    return int(given.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library has no such switches")
def test_freed_memory_is_used_again() -> None:
    """By a thread that is not the first one, as the one that computes."""
    pages = (32 << 20) // resource.getpagesize()
    assert faults("kept") < 3 * pages
    assert faults("given back") > 10 * pages


def test_it_may_be_asked_for_twice() -> None:
    keep_freed_memory()
    keep_freed_memory()
