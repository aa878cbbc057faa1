"""One side's share of a model: some of its layers, and at the edge what lies around them.

A part is the whole module tree with this side's weights only. A unit is one run of the model's own forward: layers of
other sides pass the hidden state on, and a unit that ends before the output head leaves after its last layer. Where the
part has a spine, what lies around the layers is called without that forward.

Knows modules, layers and rows. Does not know files (`loading`) or who calls it (`edge`, `cloud`).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from edgeweave.interleave.nouns import Row, Segment
from edgeweave.model.attention import KV_ATTRIBUTE
from edgeweave.model.cache import KvCache
from edgeweave.model.layers import Absent, LayersLeft, LayerStack, Passage
from edgeweave.model.probe_layer import LayerShape
from edgeweave.model.spine import Spine
from edgeweave.model.tree import ModelTree
from edgeweave.model.unit_rows import positions_of


class Part:
    """Runs units through this side's layers; `cache` holds their keys and values."""

    def __init__(self, tree: ModelTree, stack: LayerStack, cache: KvCache, *, device: torch.device) -> None:
        self.cache = cache
        self.hidden_size: int = tree.config.hidden_size
        self._model = tree.model
        self._base: nn.Module = tree.model.base_model
        self._stack = stack
        self._device = device
        self._vocab_size: int = tree.config.vocab_size
        self.spine: Spine | None = None

    def embed(self, rows: Sequence[Row], token_ids: Sequence[int], layers: Segment) -> Tensor:
        """Run the embedding and `layers` over `token_ids`, given in row order; return [tokens, hidden]."""
        ids = torch.tensor([token_ids], device=self._device)
        if self.spine is not None:
            return self._along(self.spine, rows, self.spine.embed(ids), layers)[0]
        self._stack.passage = Passage(layers, None, leaves=True)
        return self._leave(rows, input_ids=ids)

    def pass_through(self, rows: Sequence[Row], hidden: Tensor, layers: Segment) -> Tensor:
        """Run `layers` over `hidden` [tokens, hidden]; return [tokens, hidden]."""
        if self.spine is not None:
            return self._along(self.spine, rows, hidden.unsqueeze(0), layers)[0]
        self._stack.passage = Passage(layers, hidden.unsqueeze(0), leaves=True)
        return self._leave(rows, inputs_embeds=_unread(hidden))

    def finish(self, rows: Sequence[Row], hidden: Tensor, layers: Segment, *, final: Sequence[int]) -> Tensor:
        """Run `layers` and the output head over `hidden` [tokens, hidden].

        Returns the logits of the last token of each row that `final` names: [len(final), vocab].
        """
        if not final:
            if layers.num_layers:
                self.pass_through(rows, hidden, layers)
            return hidden.new_empty(0, self._vocab_size)
        last = _last_tokens(rows, final).to(self._device)
        if self.spine is not None:
            through = self._along(self.spine, rows, hidden.unsqueeze(0), layers)
            return self.spine.logits(through[:, last])[0]
        self._stack.passage = Passage(layers, hidden.unsqueeze(0), leaves=False)
        output = self._forward(self._model, rows, inputs_embeds=_unread(hidden), logits_to_keep=last)
        logits: Tensor = output.logits[0]
        return logits

    def _along(self, spine: Spine, rows: Sequence[Row], hidden: Tensor, layers: Segment) -> Tensor:
        """Run `layers` over `hidden` [1, tokens, hidden] without the model's own forward."""
        if not layers.num_layers:
            return hidden
        self.cache.begin(rows)
        positions = positions_of(rows, device=self._device)
        return spine.pass_layers(hidden, positions, range(layers.start, layers.stop))

    def _leave(self, rows: Sequence[Row], **inputs: Tensor) -> Tensor:
        try:
            self._forward(self._base, rows, **inputs)
        except LayersLeft as left:
            return left.hidden[0]
        raise AssertionError("the forward did not reach the last layer of its passage")

    def _forward(self, module: nn.Module, rows: Sequence[Row], **inputs: Tensor) -> Any:
        self.cache.begin(rows)
        return module(position_ids=positions_of(rows, device=self._device), use_cache=False, **inputs)


def cut(tree: ModelTree, *, kept: Sequence[Segment], with_outside: bool) -> LayerStack:
    """Take from `tree` all layers but those of `kept`, and, unless `with_outside`, all weights around the layers."""
    stack = LayerStack(list(tree.layers), kept=kept)
    tree.replace_layers(stack)
    if not with_outside:
        _empty_outside(tree.model)
    names = tree.model.state_dict().keys()
    tied = tree.model.all_tied_weights_keys
    tree.model.all_tied_weights_keys = {a: b for a, b in tied.items() if a in names and b in names}
    return stack


def give_kv(shapes: Sequence[LayerShape], cache: KvCache, *, kept: Sequence[Segment]) -> None:
    """Give the attention module of each layer of `kept` memory for its keys and values."""
    for segment in kept:
        for shape in shapes[segment.start : segment.stop]:
            layer = cache.add_layer(kv_heads=shape.kv_heads, key_dim=shape.key_dim, value_dim=shape.value_dim)
            setattr(shape.attention, KV_ATTRIBUTE, layer)


def _empty_outside(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, LayerStack):
            continue
        if next(child.parameters(recurse=False), None) is not None:
            setattr(module, name, Absent(looks_up=isinstance(child, nn.Embedding)))
        else:
            _empty_outside(child)


def _unread(hidden: Tensor) -> Tensor:
    """Return what stands for embeddings until the first layer: of their shape, never read, and free to be scaled."""
    return torch.empty_like(hidden).unsqueeze(0)


def _last_tokens(rows: Sequence[Row], final: Sequence[int]) -> Tensor:
    """Return the packed index of the last token of each row that `final` names: [len(final)] int64."""
    stops = torch.tensor([row.num_tokens for row in rows]).cumsum(0)
    return stops[torch.tensor(final)] - 1
