"""What of a machine and its programs a figure depends on. No names of hosts, users or folders."""

import os
import platform
from importlib import metadata
from pathlib import Path

_PACKAGES = ("torch", "transformers", "grpcio")


def machine_line() -> str:
    """Return the facts as one phrase."""
    versions = [f"{name} {metadata.version(name)}" for name in _PACKAGES]
    return ", ".join([f"{len(os.sched_getaffinity(0))} cores ({_cpu_name()})", _python(), *versions])


def _python() -> str:
    return f"Python {platform.python_version()}"


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
