"""The layers of one side, at the place of all layers in a model's own module tree.

A model's own forward walks its layer list. `LayerStack` stands where that list was, with one slot for each layer of the
whole model: a slot of another side's layer passes the hidden state on, a slot of this side runs its layer. So all that
a model does around its layers (scaled embeddings, rotary tables for each kind of layer, capped logits) is done by its
own code, with the layer numbers that it expects.

Knows layer numbers. Does not know rows, keys or values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor, nn

from edgeweave.interleave.nouns import Segment


class LayersLeft(Exception):  # noqa: N818  not an error: it carries the result out of a forward that is not needed further
    """Carries the hidden state after the last wanted layer out of a model's forward."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden  # [1, tokens, hidden]


@dataclass(frozen=True, slots=True)
class Passage:
    """What one forward does: which layers run, what enters them, and whether it ends after them."""

    layers: Segment
    injected: Tensor | None  # [1, tokens, hidden]; None: the embedding enters
    leaves: bool


class Slot:
    """Stands for one layer when the model's forward calls it; its other attributes are those of the layer."""

    def __init__(self, stack: "LayerStack", *, index: int, layer: nn.Module) -> None:
        self._stack = stack
        self._index = index
        self._layer = layer
        self._told = {name: value for name, value in vars(layer).items() if not name.startswith("_")}

    def replace(self, layer: nn.Module) -> None:
        """Run `layer` from now on; what the model reads of this slot stays what it was."""
        self._layer = layer

    def __call__(self, hidden: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Run the layer over `hidden` [1, tokens, hidden], or pass it on, as the stack's passage says."""
        passage = self._stack.passage
        if passage.injected is not None and self._index <= passage.layers.start:
            hidden = passage.injected
        if not passage.layers.start <= self._index < passage.layers.stop:
            return hidden
        hidden = self._layer(hidden, *args, **kwargs)
        if passage.leaves and self._index == passage.layers.stop - 1:
            raise LayersLeft(hidden)
        return hidden

    def __getattr__(self, name: str) -> Any:
        told = self.__dict__["_told"]
        return told[name] if name in told else getattr(self._layer, name)


class LayerStack(nn.Module):
    """All slots of a model; the layers of `kept` are its children, under their numbers."""

    def __init__(self, layers: Sequence[nn.Module], *, kept: Sequence[Segment]) -> None:
        super().__init__()
        self.passage = Passage(Segment(0, 0), None, leaves=False)
        self.kept = tuple(index for segment in kept for index in range(segment.start, segment.stop))
        self._slots = [Slot(self, index=index, layer=layer) for index, layer in enumerate(layers)]
        for index in self.kept:
            self.add_module(str(index), layers[index])

    def layer(self, index: int) -> nn.Module:
        """Return the layer `index`, one of this side."""
        return self.get_submodule(str(index))

    def replace(self, index: int, layer: nn.Module) -> None:
        """Let `layer` take the place of the layer `index`, one of this side."""
        self.add_module(str(index), layer)
        self._slots[index].replace(layer)

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    @overload
    def __getitem__(self, index: int) -> Slot: ...
    @overload
    def __getitem__(self, index: slice) -> list[Slot]: ...
    def __getitem__(self, index: int | slice) -> Slot | list[Slot]:
        return self._slots[index]


class Absent(nn.Module):
    """Stands for a module whose weights are at the other side; what it returns never reaches a layer of this side."""

    def __init__(self, *, looks_up: bool) -> None:
        super().__init__()
        self._looks_up = looks_up

    def forward(self, operand: Tensor, *_: Any, **__: Any) -> Tensor:
        """Return `operand`, or a zero that broadcasts where the module would look integers up in a table."""
        return torch.zeros((), device=operand.device) if self._looks_up else operand
