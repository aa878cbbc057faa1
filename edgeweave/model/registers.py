"""How many float32 a register of this processor holds, if it multiplies and adds them in one instruction.

And how large panels are for it. Asking compiles nothing. Knows the names of features as LLVM tells them. Does not know
what is computed.
"""

import platform
from collections.abc import Mapping
from typing import Final

from llvmlite.binding import get_host_cpu_features

_ARM: Final = frozenset({"aarch64", "arm64"})


def floats_in_register(machine: str, features: Mapping[str, bool]) -> int:
    """Return the number for a processor; 0 where products and sums are instructions of their own."""
    if machine in _ARM:
        return 4
    if not features.get("fma"):
        return 0
    return 16 if features.get("avx512f") else 8


FLOATS_IN_REGISTER: Final = floats_in_register(platform.machine().lower(), get_host_cpu_features())
WIDTH: Final = 2 * FLOATS_IN_REGISTER
"""Outputs of a panel; 0 where there are none."""
INPUTS_AT_ONCE: Final = 4
"""Inputs of a weight in panels are a multiple of this."""
