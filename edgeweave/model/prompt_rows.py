"""Attention of a row of many tokens on one core, compiled for this processor.

Scores of some queries with some keys are a product with the keys as weights, and what they attend to is a product of
their shares with the values: both have the form of `panel_sums`. So keys and values of a block are laid out in panels
once, and all queries that see them pass, a tile of as many rows as stay in registers at a time. What no query of a tile
sees is not computed. The softmax over the blocks is carried on from one to the next: the largest score so far, the sum
of powers below it, and what they gave.

Knows float32 arrays. Does not know torch, units or rules. Source: Milakov and Gimelshein, Online normalizer calculation
for softmax, 2018; Dao et al., FlashAttention, 2022.
"""

from typing import Any, Final, NamedTuple

import numba
import numpy as np

from edgeweave.model.compiled import compiled
from edgeweave.model.exponentials import largest_of, raise_e
from edgeweave.model.panel_sums import MOST_ROWS, tile_sums
from edgeweave.model.registers import INPUTS_AT_ONCE, WIDTH

_TILE: Final = MOST_ROWS[0]
_BLOCK: Final = 256
"""Keys of a block: with their values a part of the second cache; a multiple of every width."""
_FLOAT_BYTES: Final = 4
_ADDRESS = numba.uintp
_F = np.float32


@compiled()
def _lay_out_keys(panels: Any, keys: Any) -> None:
    """Write `keys` [keys, dim] to `panels` [panels, dim or more, width]; keys and inputs that there are not are 0."""
    num_keys, dim = keys.shape
    for panel in range(-(-num_keys // WIDTH)):
        for place in range(WIDTH):
            key = panel * WIDTH + place
            for x in range(panels.shape[1]):
                panels[panel, x, place] = keys[key, x] if key < num_keys and x < dim else _F(0)


@compiled()
def _lay_out_values(panels: Any, values: Any) -> None:
    """Write `values` [values, dim] to `panels` [panels, values or more, width]; the next few are 0."""
    num_values, dim = values.shape
    for panel in range(len(panels)):
        num_here = min(WIDTH, dim - panel * WIDTH)
        for i in range(num_values):
            for place in range(num_here):
                panels[panel, i, place] = values[i, panel * WIDTH + place]
        panels[panel, num_values : num_values + INPUTS_AT_ONCE] = _F(0)


@compiled()
def _multiply(numbers: Any, panels: Any, first: Any, stop: Any, zeros: Any, sums: Any) -> None:
    """Write to `sums` [rows, panels * width] the products of `numbers` with `panels` from `first` to `stop`.

    `numbers` are [inputs, rows] of a tile, and `panels` [panels, inputs or more, width].
    """
    begin, panel_bytes = _ADDRESS(panels.ctypes.data), _ADDRESS(panels.shape[1] * WIDTH * _FLOAT_BYTES)
    for panel in range(first, stop):
        tile_sums(
            _ADDRESS(0),
            _ADDRESS(_TILE),
            _ADDRESS(numbers.ctypes.data),
            begin + _ADDRESS(panel) * panel_bytes,
            _ADDRESS(0),
            _ADDRESS(len(numbers)),
            _ADDRESS(zeros.ctypes.data),
            _ADDRESS(sums.ctypes.data) + _ADDRESS(panel * WIDTH * _FLOAT_BYTES),
            _ADDRESS(sums.shape[1] * _FLOAT_BYTES),
        )


@compiled()
def _lay_out_queries(laid_out: Any, queries: Any, scaling: Any) -> None:
    """Write `queries` [queries, dim], scaled, to `laid_out` [dim or more, tile]; those that there are not are 0."""
    laid_out[:] = _F(0)
    for query in range(len(queries)):
        for x in range(queries.shape[1]):
            laid_out[x, query] = queries[query, x] * scaling


@compiled()
def _share(scores: Any, words: Any, bits: Any, largest: Any, total: Any) -> Any:
    """Turn `scores` [keys], of which `words` are the bits, into what they give beside those before.

    Return the new largest score and total, and what everything before is to be multiplied with.
    """
    bits[0] = largest_of(words)
    new = max(largest, bits.view(np.float32)[0])
    added = raise_e(scores, new, bits)
    before = _F(0) if total == _F(0) else np.exp(largest - new)
    return new, total * before + added, before


class _Room(NamedTuple):
    """What a block and a tile are computed in."""

    key_panels: Any  # [panels, inputs, width]
    value_panels: Any  # [panels, keys, width]
    scores: Any  # [queries, keys]
    words: Any  # the same, as whole numbers
    bits: Any  # [keys]
    shares: Any  # [keys, queries]
    sums: Any  # [queries, panels * width]
    zeros: Any  # [width]


@compiled()
def _room(num_inputs: Any, value_dim: Any) -> Any:
    num_value_panels = -(-value_dim // WIDTH)
    scores = np.empty((_TILE, _BLOCK), np.float32)
    return _Room(
        np.zeros((_BLOCK // WIDTH, num_inputs, WIDTH), np.float32),
        np.zeros((num_value_panels, _BLOCK + INPUTS_AT_ONCE, WIDTH), np.float32),
        scores,
        scores.view(np.int32),
        np.empty(_BLOCK, np.int32),
        np.empty((_BLOCK, _TILE), np.float32),
        np.empty((_TILE, num_value_panels * WIDTH), np.float32),
        np.zeros(WIDTH, np.float32),
    )


@compiled()
def _attend_tile(
    attended: Any, queries: Any, room: Any, block: Any, position: Any, window: Any, largest: Any, totals: Any
) -> None:
    """Add to `attended` [queries, dim] what the keys of a block give to the queries of a tile, from `position` on.

    `queries` are laid out, the block is the positions of its first key and after its last one, and `largest` and
    `totals` [queries] are carried on.
    """
    num_queries, value_dim = attended.shape
    begin, end = block
    oldest, newest = max(0, position + 1 - window - begin), min(end, position + num_queries) - begin
    padded = -(-newest // INPUTS_AT_ONCE) * INPUTS_AT_ONCE
    _multiply(queries, room.key_panels, oldest // WIDTH, -(-newest // WIDTH), room.zeros, room.scores)
    for query in range(num_queries):
        scores = room.scores[query]
        first, stop = max(0, position + query + 1 - window - begin), min(end, position + query + 1) - begin
        if stop <= first:
            scores[:padded] = _F(0)
            continue
        scores[:first], scores[stop:padded] = _F(0), _F(0)
        largest[query], totals[query], before = _share(
            scores[first:stop], room.words[query, first:stop], room.bits[: stop - first], largest[query], totals[query]
        )
        for x in range(value_dim):
            attended[query, x] *= before
    room.scores[num_queries:, :padded] = _F(0)
    for query in range(_TILE):
        for key in range(padded):
            room.shares[key, query] = room.scores[query, key]
    _multiply(room.shares[:padded], room.value_panels, 0, len(room.value_panels), room.zeros, room.sums)
    for query in range(num_queries):
        for x in range(value_dim):
            attended[query, x] += room.sums[query, x]


_THREE = "float32[:,:,::1]"


@compiled(f"void({', '.join([_THREE] * 4)}, UniTuple(int64, 4), int64, float32)")
def attend_row(
    attended: Any, queries: Any, keys: Any, values: Any, row: tuple[int, int, int, int], window: Any, scaling: Any
) -> None:
    """Write to `attended` [tokens, heads, value dim] what `queries` [tokens, heads, key dim] of one row attend to.

    `row` is where its tokens begin in the unit, where position 0 of its sequence lies in the cache, and the positions
    of its first token and after its last one. `keys` and `values` are [kv heads, tokens of the cache, dim]. A position
    sees itself and those before it, no more than `window`.
    """
    token, base, start, stop = row
    num_kv_heads, _, key_dim = keys.shape
    num_queries, group = stop - start, queries.shape[1] // num_kv_heads
    num_inputs = -(-key_dim // INPUTS_AT_ONCE) * INPUTS_AT_ONCE
    room = _room(num_inputs, values.shape[2])
    num_tiles = -(-num_queries // _TILE)
    laid_out = np.empty((group, num_tiles, num_inputs, _TILE), np.float32)
    largest, totals = np.empty((group, num_queries), np.float32), np.empty((group, num_queries), np.float32)
    for kv_head in range(num_kv_heads):
        of_group = attended[token : token + num_queries, kv_head * group : (kv_head + 1) * group]
        of_group[:], largest[:], totals[:] = _F(0), _F(-np.inf), _F(0)
        for head in range(group):
            for tile in range(num_tiles):
                first, last = token + tile * _TILE, token + min(num_queries, (tile + 1) * _TILE)
                _lay_out_queries(laid_out[head, tile], queries[first:last, kv_head * group + head], scaling)
        for begin in range(max(0, start + 1 - window), stop, _BLOCK):
            block = begin, min(stop, begin + _BLOCK)
            _lay_out_keys(room.key_panels, keys[kv_head, base + block[0] : base + block[1]])
            _lay_out_values(room.value_panels, values[kv_head, base + block[0] : base + block[1]])
            seen_until = min(num_queries, block[1] - 1 + window - start)
            for head in range(group):
                for tile in range(max(0, begin - start) // _TILE, -(-seen_until // _TILE)):
                    first, last = tile * _TILE, min(num_queries, (tile + 1) * _TILE)
                    carried = largest[head, first:last], totals[head, first:last]
                    of_tile = of_group[first:last, head], laid_out[head, tile]
                    _attend_tile(*of_tile, room, block, start + first, window, *carried)
        for query in range(num_queries):
            for head in range(group):
                for x in range(of_group.shape[2]):
                    of_group[query, head, x] /= totals[head, query]
