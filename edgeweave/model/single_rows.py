"""Attention of rows of one token on one core, all rows of a unit in one call, compiled for this processor.

torch's kernel reads keys and values of a decode step at half of what memory gives: for the few queries that share a
key head its matrix products are too small, and nothing is loaded ahead. Here each key and each value is read once, for
all queries of its head, and the lines that follow are on their way meanwhile, over the border of heads and rows too.
Rows may be of any length and lie anywhere in the cache and in the unit.

Knows float32 arrays. Does not know torch, units or rules. Source: the softmax over keys of Vaswani et al. 2017, with
the largest score taken off first.
"""

import math
from typing import Any, Final

import numba
import numpy as np

from edgeweave.model.compiled import compiled
from edgeweave.model.prefetch import LINE_BYTES, prefetch

_AHEAD_BYTES: Final = 8192
"""How far ahead is loaded: what a core computes on while one line is on its way."""
_BLOCK: Final = 4
"""Keys, or values, that are read side by side."""
_WORD_BYTES: Final = 4
_F = np.float32
_SERIES: Final = tuple(_F(math.log(2) ** n / math.factorial(n)) for n in range(7))
"""Of 2**x, for x from -1/2 to 1/2 to the last bit but one of a float32."""
_LOG2_E: Final = _F(1 / math.log(2))
_LEAST_EXPONENT: Final = _F(-126)


@compiled()
def _address(tokens: Any, token: Any) -> Any:
    """Return where in memory the token `token` of `tokens` [tokens, dim] lies."""
    return numba.uintp(tokens.ctypes.data) + numba.uintp(token * tokens.shape[1] * _WORD_BYTES)


@compiled()
def _load_ahead(tokens: Any, token: Any, stop: Any, afterwards: Any) -> None:
    """Begin to load a block of `tokens` that is needed soon after `token`, or from `stop` on what is afterwards."""
    row_bytes = tokens.shape[1] * _WORD_BYTES
    soon = token + _AHEAD_BYTES // row_bytes
    address = _address(tokens, soon) if soon < stop else afterwards + numba.uintp((soon - stop) * row_bytes)
    for line in range(_BLOCK * row_bytes // LINE_BYTES):
        prefetch(address + numba.uintp(line * LINE_BYTES))


@compiled()
def _score(scores: Any, queries: Any, keys: Any, first: Any, stop: Any, scaling: Any, afterwards: Any) -> None:
    """Write to `scores` [queries, keys] those of `queries` [queries, dim] with the tokens `[first, stop)` of `keys`."""
    dim = keys.shape[1]
    whole = stop - (stop - first) % _BLOCK
    for i in range(first, whole, _BLOCK):
        _load_ahead(keys, i, stop, afterwards)
        key_0, key_1, key_2, key_3 = keys[i], keys[i + 1], keys[i + 2], keys[i + 3]
        for query in range(len(queries)):
            numbers, found = queries[query], scores[query, i - first : i - first + _BLOCK]
            sum_0 = sum_1 = sum_2 = sum_3 = _F(0)
            for x in range(dim):
                number = numbers[x]
                sum_0 += number * key_0[x]
                sum_1 += number * key_1[x]
                sum_2 += number * key_2[x]
                sum_3 += number * key_3[x]
            found[0], found[1], found[2], found[3] = sum_0 * scaling, sum_1 * scaling, sum_2 * scaling, sum_3 * scaling
    for i in range(whole, stop):
        for query in range(len(queries)):
            numbers, key_0, sum_0 = queries[query], keys[i], _F(0)
            for x in range(dim):
                sum_0 += numbers[x] * key_0[x]
            scores[query, i - first] = sum_0 * scaling


@compiled()
def _share(scores: Any, bits: Any) -> None:
    """Turn `scores` [keys] into shares that add up to 1; `bits` [keys] are whole numbers to write to."""
    powers = bits.view(np.float32)
    largest = scores[0]
    for i in range(1, len(scores)):
        largest = max(largest, scores[i])
    for i in range(len(scores)):
        exponent = max((scores[i] - largest) * _LOG2_E, _LEAST_EXPONENT)
        whole = math.floor(exponent + _F(0.5))
        x = exponent - whole
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)  # two to the power of it, as a float
        rest = _SERIES[3] + x * (_SERIES[4] + x * (_SERIES[5] + x * _SERIES[6]))
        scores[i] = _SERIES[0] + x * (_SERIES[1] + x * (_SERIES[2] + x * rest))
    total = _F(0)
    for i in range(len(scores)):
        scores[i] *= powers[i]
        total += scores[i]
    for i in range(len(scores)):
        scores[i] /= total


@compiled()
def _sum(sums: Any, shares: Any, values: Any, first: Any, stop: Any, afterwards: Any) -> None:
    """Write to `sums` [queries, dim] the tokens `[first, stop)` of `values`, each by its share [queries, keys]."""
    dim = values.shape[1]
    whole = stop - (stop - first) % _BLOCK
    sums[:] = _F(0)
    for i in range(first, whole, _BLOCK):
        _load_ahead(values, i, stop, afterwards)
        value_0, value_1, value_2, value_3 = values[i], values[i + 1], values[i + 2], values[i + 3]
        for query in range(len(sums)):
            numbers, share = sums[query], shares[query, i - first : i - first + _BLOCK]
            share_0, share_1, share_2, share_3 = share[0], share[1], share[2], share[3]
            for x in range(dim):
                numbers[x] += share_0 * value_0[x] + share_1 * value_1[x] + share_2 * value_2[x] + share_3 * value_3[x]
    for i in range(whole, stop):
        for query in range(len(sums)):
            numbers, value_0, share_0 = sums[query], values[i], shares[query, i - first]
            for x in range(dim):
                numbers[x] += share_0 * value_0[x]


_THREE, _NUMBERS = "float32[:,:,::1]", "int64[::1]"


@compiled(f"void({', '.join([_THREE] * 4)}, {', '.join([_NUMBERS] * 3)}, float32)")
def attend_singles(
    attended: Any, queries: Any, keys: Any, values: Any, tokens: Any, firsts: Any, stops: Any, scaling: Any
) -> None:
    """Write to `attended` [tokens, heads, value dim] what the `queries` [tokens, heads, key dim] of `tokens` attend to.

    Row i is token `tokens[i]` of the unit; its keys are the tokens `[firsts[i], stops[i])` of the cache, of which
    `keys` and `values` are [kv heads, tokens, dim].
    """
    num_kv_heads = len(keys)
    group = queries.shape[1] // num_kv_heads
    longest = (stops - firsts).max()
    scores = np.empty((group, longest), np.float32)
    bits = np.empty(longest, np.int32)
    for row in range(len(tokens)):
        first, stop = firsts[row], stops[row]
        next_row = min(row + 1, len(tokens) - 1)
        for head in range(num_kv_heads):
            of_head = slice(head * group, (head + 1) * group)
            is_last = head + 1 == num_kv_heads
            next_keys = _address(keys[0], firsts[next_row]) if is_last else _address(keys[head + 1], first)
            _score(
                scores, queries[tokens[row], of_head], keys[head], first, stop, scaling, _address(values[head], first)
            )
            for query in range(group):
                _share(scores[query, : stop - first], bits[: stop - first])
            _sum(attended[tokens[row], of_head], scores, values[head], first, stop, next_keys)
