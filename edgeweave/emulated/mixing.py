"""The arithmetic of digests: whole numbers modulo 2**64.

Everywhere the same three things: a mix that changes every bit with each bit of its input, a place that makes equal
values at different positions differ, and numbers of a layer that nobody else uses. In plain integers for what is
computed once, in numpy for rows; a test holds the two together.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""Any shape; arithmetic wraps."""

MASK = (1 << 64) - 1
PLACE = 0x9E3779B97F4A7C15
"""Odd, so that different positions have different places."""
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mix(value: int) -> int:
    """Return the mix of one number: the last step of SplitMix64."""
    value &= MASK
    value = (value ^ (value >> 30)) * _FIRST & MASK
    value = (value ^ (value >> 27)) * _SECOND & MASK
    return value ^ (value >> 31)


def mix_words(values: Words) -> Words:
    """Return the mix of each number."""
    mixed = values ^ (values >> np.uint64(30))
    mixed *= np.uint64(_FIRST)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_SECOND)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def place(position: int) -> int:
    """Return the place of a position."""
    return (position + 1) * PLACE & MASK


def places(positions: Words) -> Words:
    """Return the place of each position."""
    return (positions + np.uint64(1)) * np.uint64(PLACE)
