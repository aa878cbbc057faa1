"""CPU time of processes, as the kernel counts it.

Knows `/proc`. Does not know what the processes do.
"""

import os
from collections.abc import Mapping
from pathlib import Path

_USER_FIELD = 11
_SYSTEM_FIELD = 12
"""Places in `/proc/PID/stat` after the name of the program, which may hold spaces."""


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU time that each process has taken so far, in user and kernel mode."""
    return {name: parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")) for name, pid in pids.items()}


def parse_stat(line: str) -> float:
    """Return the CPU seconds in a line of `/proc/PID/stat`."""
    fields = line.rpartition(")")[2].split()
    return (int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD])) / os.sysconf("SC_CLK_TCK")


def core_shares(before: Mapping[str, float], after: Mapping[str, float], *, wall_s: float) -> dict[str, float]:
    """Return what share of one core each process took between two readings."""
    return {name: (after[name] - seconds) / wall_s for name, seconds in before.items()}
