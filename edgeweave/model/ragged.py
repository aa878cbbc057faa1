"""Attention of one row to the keys and values of its own sequence.

Reads the cache through views: a sequence's tokens lie side by side, heads that share a key head are a dimension of
their own, so nothing is gathered or repeated. Plain attention goes to torch's fused kernel; what that kernel does not
know (capped scores, sinks) is computed by its formula.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from edgeweave.model.attention import AttentionRule
from edgeweave.model.unit_rows import PlacedRow, UnitRows


def attend_row(
    query: Tensor, keys: Tensor, values: Tensor, *, row: PlacedRow, unit: UnitRows, rule: AttentionRule
) -> Tensor:
    """Return what the tokens of `row` attend to: [queries, heads, value dim].

    `query` is [heads, queries, key dim]; `keys` and `values` are those of the whole cache, [tokens, kv heads, dim].
    """
    window = rule["sliding_window"]
    first_key = _first_key(row, window)
    seen = slice(row.base + first_key, row.base + row.stop)
    grouped = query.view(keys.shape[1], -1, *query.shape[1:])  # [kv heads, group, queries, key dim]
    row_keys = keys[seen].transpose(0, 1)  # [kv heads, keys, key dim]
    row_values = values[seen].transpose(0, 1)  # [kv heads, keys, value dim]
    mask = None if row.stop - row.start == 1 else unit.mask(row, first_key=first_key, window=window)
    if rule["softcap"] is None and rule["sinks"] is None:
        attended = _fused(grouped, row_keys, row_values, mask=mask, scaling=rule["scaling"])
    else:
        attended = _by_formula(grouped, row_keys, row_values, mask=mask, rule=rule)
    return attended.flatten(0, 1).transpose(0, 1)


def _first_key(row: PlacedRow, window: int | None) -> int:
    """Return the first position that the first query of `row` sees."""
    return 0 if window is None else max(0, row.start + 1 - window)


def _fused(query: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None, scaling: float) -> Tensor:
    if mask is None:  # one query: the heads of a group take the place of queries, and none is masked
        one = query.squeeze(2).unsqueeze(0)  # [1, kv heads, group, key dim]
        attended = scaled_dot_product_attention(one, keys.unsqueeze(0), values.unsqueeze(0), scale=scaling)
        return attended.squeeze(0).unsqueeze(2)
    group = query.shape[1]
    keys = keys.unsqueeze(1).expand(-1, group, -1, -1)
    values = values.unsqueeze(1).expand(-1, group, -1, -1)
    return scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scaling)


def _by_formula(query: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None, rule: AttentionRule) -> Tensor:
    scores = query @ keys.transpose(1, 2).unsqueeze(1) * rule["scaling"]  # [kv heads, group, queries, keys]
    if rule["softcap"] is not None:
        scores = torch.tanh(scores / rule["softcap"]) * rule["softcap"]
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = _softmax(scores.float(), rule["sinks"]).to(values.dtype)
    return weights @ values.unsqueeze(1)


def _softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Return the softmax of `scores` over keys; a sink of its head takes its share and gives nothing."""
    if sinks is None:
        return scores.softmax(-1)
    sink = sinks.float().view(scores.shape[0], scores.shape[1], 1, 1).expand(-1, -1, scores.shape[2], 1)
    return torch.cat([scores, sink], dim=-1).softmax(-1)[..., :-1]
