"""Which layers run directly, and the proof for each.

A layer of the common shape is run by its own forward once, and once directly, over the same hidden states. It runs
directly from then on where both give the same, and its own forward used nothing that could make them differ
elsewhere: no operation with a threshold or a choice, none but those that the shape needs. Every other layer stays as
it is.

Knows parts and layers. Knows no architecture by name.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from edgeweave.interleave.nouns import Segment
from edgeweave.model.attention import KV_ATTRIBUTE, AttentionRule
from edgeweave.model.cache import LayerKv
from edgeweave.model.common_layer import common_layer
from edgeweave.model.direct_layer import DirectLayer, Rotation
from edgeweave.model.layers import LayerStack
from edgeweave.model.packed import Packing
from edgeweave.model.part import Part
from edgeweave.model.probe_layer import LayerShape
from edgeweave.model.sameness import SMOOTH, Operations, is_near
from edgeweave.model.trial import trial_unit


@torch.inference_mode()
def run_directly(part: Part, stack: LayerStack, shapes: Sequence[LayerShape], packing: Packing) -> tuple[int, ...]:
    """Let layers of `stack` run directly where that is the same, laid out as `packing` says; return which."""
    rotation = Rotation()
    indices = []
    for index in stack.kept:
        direct = _direct(part, stack, index, shapes[index], rotation)
        if direct is not None:
            direct.pack(packing)
            indices.append(index)
    part.cache.free_all()
    return tuple(indices)


def _direct(part: Part, stack: LayerStack, index: int, shape: LayerShape, rotation: Rotation) -> DirectLayer | None:
    """Return the layer that has taken the place of layer `index`, `None` where that one stays."""
    own = stack.layer(index)
    modules = common_layer(own)
    if modules is None:
        return None
    watched = _WatchedKv(getattr(shape.attention, KV_ATTRIBUTE))
    stack.replace(index, _WatchedLayer(own, watched.operations))
    setattr(shape.attention, KV_ATTRIBUTE, watched)
    expected = _output(part, index)
    setattr(shape.attention, KV_ATTRIBUTE, watched.kv)
    stack.replace(index, own)
    if len(watched.rules) != 1 or not watched.operations.seen <= SMOOTH:
        return None
    direct = DirectLayer(modules, kv=watched.kv, rule=watched.rules[0], rotation=rotation)
    stack.replace(index, direct)
    if _is_same(part, index, expected):
        return direct
    stack.replace(index, own)
    return None


def _is_same(part: Part, index: int, expected: Tensor) -> bool:
    try:
        output = _output(part, index)
    except (TypeError, RuntimeError):  # its own forward takes other arguments, or its weights have other shapes
        return False
    return is_near(output, expected)


def _output(part: Part, index: int) -> Tensor:
    """Return the output of layer `index` for a few tokens: [tokens, hidden]."""
    rows, hidden = trial_unit(part, seed=index)
    return part.pass_through(rows, hidden, Segment(index, index + 1))


class _WatchedLayer(nn.Module):
    """Stands for a layer, and notes what it computes."""

    def __init__(self, own: nn.Module, operations: Operations) -> None:
        super().__init__()
        self._own = own
        self._operations = operations

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Run the layer's own forward."""
        with self._operations:
            output: Tensor = self._own(*args, **kwargs)
        return output


class _WatchedKv:
    """Stands for the keys and values of a layer, and notes how it attends; attention is no operation of the layer."""

    def __init__(self, kv: LayerKv) -> None:
        self.kv = kv
        self.rules: list[AttentionRule] = []
        self.operations = Operations()

    def attend(self, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor:
        """Attend as `kv` does."""
        self.rules.append(rule)
        self.operations.is_off = True
        attended = self.kv.attend(query, key, value, rule)
        self.operations.is_off = False
        return attended
