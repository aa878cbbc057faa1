"""How many float32 a register of this processor holds, if it multiplies and adds them in one instruction.

How many such registers it has, and how large panels are for it. Asking compiles nothing. Knows the names of features
as LLVM tells them. Does not know what is computed.
"""

import platform
from collections.abc import Mapping
from typing import Final

from llvmlite.binding import get_host_cpu_features

_ARM: Final = frozenset({"aarch64", "arm64"})
_AVX512: Final = 16


def floats_in_register(machine: str, features: Mapping[str, bool]) -> int:
    """Return the number for a processor; 0 where products and sums are instructions of their own."""
    if machine in _ARM:
        return 4
    if not features.get("fma"):
        return 0
    return _AVX512 if features.get("avx512f") else 8


def vector_registers(machine: str, floats: int) -> int:
    """Return how many such registers the processor has, if each holds `floats`."""
    return 32 if machine in _ARM or floats == _AVX512 else 16


def multiplies_bfloat16(features: Mapping[str, bool]) -> bool:
    """Return whether a processor multiplies pairs of bfloat16 and adds them to a float32 in one instruction."""
    return bool(features.get("avx512bf16"))


_MACHINE: Final = platform.machine().lower()
FLOATS_IN_REGISTER: Final = floats_in_register(_MACHINE, get_host_cpu_features())
MULTIPLIES_BFLOAT16: Final = multiplies_bfloat16(get_host_cpu_features())
VECTOR_REGISTERS: Final = vector_registers(_MACHINE, FLOATS_IN_REGISTER)
WIDTH: Final = 2 * FLOATS_IN_REGISTER
"""Outputs of a panel; 0 where there are none."""
INPUTS_AT_ONCE: Final = 4
"""Inputs of a weight in panels are a multiple of this."""
