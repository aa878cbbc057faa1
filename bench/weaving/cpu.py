"""CPU time of processes, as the kernel counts it.

Knows `/proc`. Does not know what the processes do.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from edgeweave.engine.worker import THREAD_NAME

ENGINES = ("edge", "cloud")
_USER_FIELD = 11
_SYSTEM_FIELD = 12
"""Places in `/proc/PID/stat` after the name of the program, which may hold spaces."""


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU time that each process has taken so far, in user and kernel mode.

    What compute threads of engines took of it comes beside it, as "edge compute" and "cloud compute".
    """
    whole = {name: parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")) for name, pid in pids.items()}
    compute = {f"{name} {THREAD_NAME}": _compute_seconds(pids[name]) for name in ENGINES if name in pids}
    return whole | compute


def control_share(cpu: Mapping[str, float]) -> float:
    """Return what scheduler and engines took without computing, of the shares that all of them took."""
    compute = sum(cpu.get(f"{name} {THREAD_NAME}", 0.0) for name in ENGINES)
    return sum(cpu.get(name, 0.0) for name in ("scheduler", *ENGINES)) - compute


def _compute_seconds(pid: int) -> float:
    stats = [path.read_text(encoding="utf-8") for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return sum(parse_stat(stat) for stat in stats if f"({THREAD_NAME})" in stat)


def parse_stat(line: str) -> float:
    """Return the CPU seconds in a line of `/proc/PID/stat`."""
    fields = line.rpartition(")")[2].split()
    return (int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD])) / os.sysconf("SC_CLK_TCK")


def core_shares(before: Mapping[str, float], after: Mapping[str, float], *, wall_s: float) -> dict[str, float]:
    """Return what share of one core each process took between two readings."""
    return {name: (after[name] - seconds) / wall_s for name, seconds in before.items()}
