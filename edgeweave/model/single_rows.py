"""Attention of rows of one token on one core, all rows of a unit in one call, compiled for this processor.

torch's kernel reads keys and values of a decode step at half of what memory gives: for the few queries that share a
key head its matrix products are too small, and nothing is loaded ahead. Here each key and each value is read once, for
all queries of its head, and the lines that follow are on their way meanwhile, over the border of heads and rows too.
Rows may be of any length and lie anywhere in the cache and in the unit.

Knows float32 arrays. Does not know torch, units or rules. Source: the softmax over keys of Vaswani et al. 2017, with
the largest score taken off first.
"""

from typing import Any, Final

import numba
import numpy as np

from edgeweave.model.compiled import compiled
from edgeweave.model.exponentials import largest_of, raise_e
from edgeweave.model.prefetch import LINE_BYTES, prefetch

_AHEAD_BYTES: Final = 24 * 1024
"""How far ahead is loaded: what a core computes on while one line is on its way."""
_BLOCK: Final = 4
"""Keys, or values, that are read side by side."""
_WORD_BYTES: Final = 4
_F = np.float32


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
    num_queries, dim = queries.shape
    whole = stop - (stop - first) % _BLOCK
    for i in range(first, whole, _BLOCK):
        _load_ahead(keys, i, stop, afterwards)
        for query in range(num_queries):
            sum_0 = sum_1 = sum_2 = sum_3 = _F(0)
            for x in range(dim):
                number = queries[query, x]
                sum_0 += number * keys[i, x]
                sum_1 += number * keys[i + 1, x]
                sum_2 += number * keys[i + 2, x]
                sum_3 += number * keys[i + 3, x]
            scores[query, i - first], scores[query, i - first + 1] = sum_0 * scaling, sum_1 * scaling
            scores[query, i - first + 2], scores[query, i - first + 3] = sum_2 * scaling, sum_3 * scaling
    for i in range(whole, stop):
        for query in range(num_queries):
            sum_0 = _F(0)
            for x in range(dim):
                sum_0 += queries[query, x] * keys[i, x]
            scores[query, i - first] = sum_0 * scaling


@compiled()
def _share(scores: Any, words: Any, bits: Any) -> None:
    """Turn `scores` [keys], of which `words` are the bits, into shares that add up to 1; write to `bits` [keys]."""
    bits[0] = largest_of(words)
    total = raise_e(scores, bits.view(np.float32)[0], bits)
    for i in range(len(scores)):
        scores[i] /= total


@compiled()
def _sum(sums: Any, shares: Any, values: Any, first: Any, stop: Any, afterwards: Any) -> None:
    """Write to `sums` [queries, dim] the tokens `[first, stop)` of `values`, each by its share [queries, keys]."""
    num_queries, dim = sums.shape
    whole = stop - (stop - first) % _BLOCK
    sums[:] = _F(0)
    for i in range(first, whole, _BLOCK):
        _load_ahead(values, i, stop, afterwards)
        for query in range(num_queries):
            share_0, share_1 = shares[query, i - first], shares[query, i - first + 1]
            share_2, share_3 = shares[query, i - first + 2], shares[query, i - first + 3]
            for x in range(dim):
                sums[query, x] += (
                    share_0 * values[i, x]
                    + share_1 * values[i + 1, x]
                    + share_2 * values[i + 2, x]
                    + share_3 * values[i + 3, x]
                )
    for i in range(whole, stop):
        for query in range(num_queries):
            for x in range(dim):
                sums[query, x] += shares[query, i - first] * values[i, x]


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
    words, bits = scores.view(np.int32), np.empty(longest, np.int32)
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
                _share(scores[query, : stop - first], words[query, : stop - first], bits[: stop - first])
            _sum(attended[tokens[row], of_head], scores, values[head], first, stop, next_keys)
