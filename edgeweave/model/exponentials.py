"""Powers of e, many at once, compiled for this processor.

Knows float32 arrays. Does not know what they are for.
"""

import math
from typing import Any, Final

import numpy as np

from edgeweave.model.compiled import compiled

_F = np.float32
_SERIES: Final = tuple(_F(math.log(2) ** n / math.factorial(n)) for n in range(7))
"""Of 2**x, for x from -1/2 to 1/2 to the last bit but one of a float32."""
_LOG2_E: Final = _F(1 / math.log(2))
_LEAST_EXPONENT: Final = _F(-126)


_SIGN, _OTHERS = np.int32(31), np.int32(0x7FFFFFFF)


@compiled()
def largest_of(words: Any) -> Any:
    """Return the largest of float32 numbers, given as the whole numbers that their bits are; there is at least one.

    So many are compared at once, which floats are not: one that is no number would decide by its place. Their order is
    that of the whole numbers, if those of negative ones are turned round.
    """
    largest = np.int32(-0x80000000)
    for i in range(len(words)):
        largest = max(largest, words[i] ^ ((words[i] >> _SIGN) & _OTHERS))
    return np.int32(largest ^ ((largest >> _SIGN) & _OTHERS))


@compiled()
def raise_e(numbers: Any, largest: Any, bits: Any) -> Any:
    """Turn `numbers` into powers of e, less `largest` each, and return their sum; none is above `largest`.

    `bits` are as many whole numbers to write to.
    """
    powers = bits.view(np.float32)
    for i in range(len(numbers)):
        exponent = max((numbers[i] - largest) * _LOG2_E, _LEAST_EXPONENT)
        whole = np.floor(exponent + _F(0.5))
        x = exponent - whole
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)  # two to the power of it, as a float
        rest = _SERIES[3] + x * (_SERIES[4] + x * (_SERIES[5] + x * _SERIES[6]))
        numbers[i] = _SERIES[0] + x * (_SERIES[1] + x * (_SERIES[2] + x * rest))
    total = _F(0)
    for i in range(len(numbers)):
        numbers[i] *= powers[i]
        total += numbers[i]
    return total
