"""A layer of the common shape, run without its own forward: the same products in few calls.

What is the same for all layers of a unit is made once (`Rotation`, and the rows of the cache); products of one operand
are one product; nothing is copied but where attention needs it. The numbers are those of transformers' layer, up to
the order of sums.

Knows the arithmetic of one layer. Does not know where its modules come from, nor rows.
"""

from typing import Any

import torch
from torch import Tensor, nn

from edgeweave.model.attention import AttentionRule
from edgeweave.model.cache import LayerKv
from edgeweave.model.common_layer import CommonLayer
from edgeweave.model.packed import Packing, packed


class Rotation:
    """Rotary positions of the unit that runs now, as packed heads take them; made once for all layers alike."""

    def __init__(self) -> None:
        self._made_of: Tensor | None = None
        self._tables: tuple[Tensor, Tensor]

    def of(self, position_embeddings: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return cosines, and sines that are negative for the first half of a head: each [tokens, 1, dim].

        `position_embeddings` are cosines and sines as models make them: each [1, tokens, dim].
        """
        cosines, sines = position_embeddings
        if cosines is not self._made_of:
            first, second = sines[0].unsqueeze(1).chunk(2, dim=-1)
            self._tables = cosines[0].unsqueeze(1), torch.cat((-first, second), dim=-1)
            self._made_of = cosines
        return self._tables


class DirectLayer(nn.Module):
    """A layer of the common shape over `kv`, which holds its keys and values."""

    def __init__(self, modules: CommonLayer, *, kv: LayerKv, rule: AttentionRule, rotation: Rotation) -> None:
        super().__init__()
        self._kv = kv
        self._rule = rule
        self._rotation = rotation
        self._input_norm, self._mlp_norm = modules.input_norm, modules.mlp_norm
        self._query_norm, self._key_norm = modules.query_norm, modules.key_norm
        self._num_kv_heads, _, self._dim = kv.keys.shape
        self._num_heads = modules.output.in_features // self._dim
        self.queries_keys_values: nn.Module = modules.queries_keys_values
        self.output: nn.Module = modules.output
        self.gate_up: nn.Module = modules.gate_up
        self.activation = modules.activation
        self.down: nn.Module = modules.down

    def pack(self, packing: Packing) -> None:
        """Lay out the linear layers as `packing` says."""
        for name, child in list(self.named_children()):
            if type(child) is nn.Linear:
                setattr(self, name, packed(child, packing))

    def forward(self, hidden: Tensor, *, position_embeddings: tuple[Tensor, Tensor], **_: Any) -> Tensor:
        """Run the layer over `hidden` [1, tokens, hidden]; return the same shape."""
        products = self.queries_keys_values(self._input_norm(hidden))
        hidden = self.output(self._attended(products, position_embeddings)).add_(hidden)
        gate, up = self.gate_up(self._mlp_norm(hidden)).chunk(2, dim=-1)
        output: Tensor = self.down(self.activation(gate).mul_(up)).add_(hidden)
        return output

    def _attended(self, products: Tensor, position_embeddings: tuple[Tensor, Tensor]) -> Tensor:
        """Return what the tokens attend to, [1, tokens, heads * dim], from queries, keys and values side by side."""
        heads = products.view(products.shape[1], -1, self._dim)  # [tokens, heads + 2 * kv heads, dim]
        num_rotated = self._num_heads + self._num_kv_heads
        queries_keys, values = heads[:, :num_rotated], heads[:, num_rotated:]
        if self._query_norm is not None and self._key_norm is not None:
            queries, keys = queries_keys[:, : self._num_heads], queries_keys[:, self._num_heads :]
            queries_keys = torch.cat((self._query_norm(queries), self._key_norm(keys)), dim=1)
        cosines, sines = self._rotation.of(position_embeddings)
        rotated = (queries_keys * cosines).addcmul_(queries_keys.roll(self._dim // 2, -1), sines)
        queries, keys = rotated[:, : self._num_heads], rotated[:, self._num_heads :]
        return self._kv.attend_tokens(queries, keys, values, self._rule).view(1, len(heads), -1)
