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
_PLACE_WORD, _FIRST_WORD, _SECOND_WORD = (np.uint64(factor) for factor in (PLACE, _FIRST, _SECOND))
_ONE, _FAR, _NEAR = (np.uint64(number) for number in (1, 32, 29))


def mix(value: int) -> int:
    """Return the mix of one number: twice multiplied, and its high bits brought down each time."""
    value = value * _FIRST & MASK
    value = (value ^ (value >> 32)) * _SECOND & MASK
    return value ^ (value >> 29)


def mix_words(values: Words) -> Words:
    """Return the mix of each number."""
    mixed = values * _FIRST_WORD
    mixed ^= mixed >> _FAR
    mixed *= _SECOND_WORD
    mixed ^= mixed >> _NEAR
    return mixed


def place(position: int) -> int:
    """Return the place of a position."""
    return (position + 1) * PLACE & MASK


def places(positions: Words) -> Words:
    """Return the place of each position."""
    return (positions + _ONE) * _PLACE_WORD
