"""Functions that are compiled for this processor when they are first imported, and kept on the disk for the next start.

Knows numba. Does not know what is computed.
"""

from collections.abc import Callable
from typing import Any, Final

import numba

_OPTIONS: Final[dict[str, Any]] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},  # sums in any order; NaN and infinity stay what they are
    "error_model": "numpy",
}


def compiled(*signature: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function for this processor; keep it on the disk for the next start if a folder can be written to.

    It is found there by its text, so nothing else may be in it: a closure would be compiled and kept at every start.
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        if function.__closure__ is not None:
            raise TypeError(f"{function.__qualname__} holds variables of the function around it")
        jit: Any = numba.njit
        try:
            kept: Callable[..., Any] = jit(*signature, cache=True, **_OPTIONS)(function)
        except RuntimeError:
            kept = jit(*signature, **_OPTIONS)(function)
        return kept

    return compile_it
