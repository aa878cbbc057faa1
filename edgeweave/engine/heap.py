"""Memory that is freed stays with the process, for the next unit.

A unit makes some tensors of megabytes for each layer and frees them at once. The C library gives such memory back to
the system, which then clears every page of it before the next layer may write there: a tenth of a prefill's time.

Knows the C library's switches. Does not know units.
"""

import ctypes
from contextlib import suppress
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MOST_ARENAS = -1, -3, -8
"""Numbers of the switches, from malloc.h of the GNU C library."""
_LARGEST_BLOCK: Final = 32 << 20
"""Bytes of the largest block that may lie among others: the most that the library takes."""
_MOST_KEPT: Final = 1 << 30
"""Bytes that stay at most though nothing uses them."""


def keep_freed_memory() -> None:
    """Keep memory that is freed from now on; do nothing where the C library is another one.

    All threads share it: the memory of a thread of its own would be small pieces that are given back whole.
    """
    with suppress(AttributeError, OSError):
        switch = ctypes.CDLL(None).mallopt
        for name, value in ((_TRIM_THRESHOLD, _MOST_KEPT), (_MMAP_THRESHOLD, _LARGEST_BLOCK), (_MOST_ARENAS, 1)):
            switch(name, value)
