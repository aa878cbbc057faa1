"""A process that keeps time: what is set once, before its threads start.

Knows Linux and the interpreter. Does not know what is timed.
"""

import ctypes
import sys

from edgeweave.link.poller import set_timer_slack

_SWITCH_INTERVAL_S = 0.000_1
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 1 << 30


def keep_exact_time() -> None:
    """Let what this thread, and those that it starts, do take the same time again and again.

    Timers go off when they are due; a thread that wakes waits for the interpreter for a tenth of a millisecond at
    most; and memory of hidden states stays mapped when it is freed, so that the next ones do not fault page by page.
    """
    set_timer_slack(1)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc; others have no such choice
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
