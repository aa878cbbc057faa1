"""Attention of the rows of a unit, each to the keys and values of its own sequence.

Reads the cache through views: a sequence's tokens lie side by side, heads that share a key head are a dimension of
their own, so nothing is gathered or repeated. Rows of one token and of many go to the compiled attention of `one_core`
where it is right for them, other plain attention to torch's fused kernel; what that kernel does not know (capped
scores, sinks) is computed by its formula.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from edgeweave.model.attention import AttentionRule
from edgeweave.model.bands import Band, Bands
from edgeweave.model.one_core import OneCore
from edgeweave.model.placed_row import PlacedRow
from edgeweave.model.unit_rows import UnitRows


@dataclass(frozen=True, slots=True)
class KeysValues:
    """Keys and values of all tokens of one layer, and what attends to them for rows of one token, if torch does not."""

    keys: Tensor  # [kv heads, tokens, key dim]
    values: Tensor  # [kv heads, tokens, value dim]
    one_core: OneCore | None


def attend_unit(query: Tensor, kept: KeysValues, *, unit: UnitRows, rule: AttentionRule) -> Tensor:
    """Return what the tokens of `unit` attend to: [tokens, heads, value dim].

    `query` is [tokens, heads, key dim]; `kept` are the keys and values of the whole cache.
    """
    attended = query.new_empty(*query.shape[:2], kept.values.shape[2])
    if unit.singles and kept.one_core is not None and _is_plain(rule):
        kept.one_core.attend(attended, query, unit.table, rule)
    elif unit.singles:
        attended.index_copy_(0, unit.bands.tokens, _attend_bands(query, kept, bands=unit.bands, rule=rule))
    for row in unit.rows:
        if kept.one_core is not None and kept.one_core.takes(row) and _is_plain(rule):
            kept.one_core.attend_row(attended, query, row, rule)
            continue
        packed = slice(row.packed_start, row.packed_stop)
        attended[packed] = _attend_row(query[packed], kept.keys, kept.values, row=row, unit=unit, rule=rule)
    return attended


def _attend_bands(query: Tensor, kept: KeysValues, *, bands: Bands, rule: AttentionRule) -> Tensor:
    """Return what the rows of `bands` attend to, one query each, band by band."""
    of_each = torch.split_with_sizes(query[bands.tokens], [band.num_rows for band in bands.bands])
    attended = [
        _attend_band(of_band, kept.keys, kept.values, band=band, rule=rule)
        for of_band, band in zip(of_each, bands.bands, strict=True)
    ]
    return torch.cat(attended)


def _attend_band(query: Tensor, keys: Tensor, values: Tensor, *, band: Band, rule: AttentionRule) -> Tensor:
    """Return what the rows of `band` attend to; the heads of a group take the place of queries, and none is masked."""
    num_rows, num_heads, key_dim = query.shape
    first_key = _first_key(band.start, rule["sliding_window"])
    span = (band.base + first_key, band.start + 1 - first_key)
    band_keys = _strided(keys, band, span)  # [rows, kv heads, keys, key dim]
    band_values = _strided(values, band, span)  # [rows, kv heads, keys, value dim]
    grouped = query.view(num_rows, keys.shape[0], -1, key_dim)  # [rows, kv heads, group, key dim]
    if _is_plain(rule):
        attended = scaled_dot_product_attention(grouped, band_keys, band_values, scale=rule["scaling"])
    else:
        attended = _by_formula(grouped.unsqueeze(3), band_keys, band_values, mask=None, rule=rule)
    return attended.reshape(num_rows, num_heads, -1)


def _strided(tokens: Tensor, band: Band, span: tuple[int, int]) -> Tensor:
    """Return the tokens of all sequences of `band`, from the first one's `span[0]` on, `span[1]` of each."""
    num_heads, num_tokens, dim = tokens.shape
    first, num_seen = span
    shape = (band.num_rows, num_heads, num_seen, dim)
    return torch.as_strided(tokens, shape, (band.step * dim, num_tokens * dim, dim, 1), first * dim)


def _attend_row(
    query: Tensor, keys: Tensor, values: Tensor, *, row: PlacedRow, unit: UnitRows, rule: AttentionRule
) -> Tensor:
    """Return what the tokens of `row` attend to."""
    window = rule["sliding_window"]
    first_key = _first_key(row.start, window)
    seen = slice(row.base + first_key, row.base + row.stop)
    grouped = query.view(len(query), keys.shape[0], -1, query.shape[2]).permute(1, 2, 0, 3)
    row_keys, row_values = keys[:, seen], values[:, seen]  # [kv heads, keys, dim]
    is_whole = row.start == 0 and (window is None or window >= row.stop)
    if is_whole and _is_plain(rule):
        mask = None
    else:
        mask = unit.mask(row, first_key=first_key, window=window, dtype=query.dtype)
    if _is_plain(rule):
        attended = _fused(grouped, row_keys, row_values, mask=mask, scaling=rule["scaling"])
    else:
        attended = _by_formula(grouped, row_keys, row_values, mask=mask, rule=rule)
    return attended.permute(2, 0, 1, 3).flatten(1, 2)  # of [kv heads, group, queries, value dim]


def _first_key(start: int, window: int | None) -> int:
    """Return the first position that a query at `start` sees."""
    return 0 if window is None else max(0, start + 1 - window)


def _is_plain(rule: AttentionRule) -> bool:
    """Whether torch's fused kernel knows all of `rule`."""
    return rule["softcap"] is None and rule["sinks"] is None


def _fused(query: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None, scaling: float) -> Tensor:
    """Return [kv heads, group, queries, value dim]; without a mask each query sees the keys up to its own."""
    group = query.shape[1]
    keys = keys.unsqueeze(1).expand(-1, group, -1, -1)
    values = values.unsqueeze(1).expand(-1, group, -1, -1)
    return scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=mask is None, scale=scaling)


def _by_formula(query: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None, rule: AttentionRule) -> Tensor:
    """Return [..., kv heads, group, queries, value dim]; `keys` and `values` are [..., kv heads, keys, dim]."""
    scores = query @ keys.transpose(-2, -1).unsqueeze(-3) * rule["scaling"]  # [..., kv heads, group, queries, keys]
    if rule["softcap"] is not None:
        scores = torch.tanh(scores / rule["softcap"]) * rule["softcap"]
    if mask is not None:
        scores += mask
    weights = _softmax(scores.float(), rule["sinks"]).to(values.dtype)
    return weights @ values.unsqueeze(-3)


def _softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Return the softmax of `scores` over keys; a sink of its head takes its share and gives nothing."""
    if sinks is None:
        return scores.softmax(-1)
    kv_heads, group, queries = scores.shape[-4:-1]
    sink = sinks.float().view(kv_heads, group, 1, 1).expand(*scores.shape[:-4], kv_heads, group, queries, 1)
    return torch.cat([scores, sink], dim=-1).softmax(-1)[..., :-1]
