"""Whether a model can be cut, and what its layers store, found by looking.

The model's own forward runs once without weights (meta tensors cost nothing) up to its layers, and each layer runs up
to its attention. What is seen decides: the hidden state must be one tensor [1, tokens, hidden]; nothing else that a
layer takes may stem from token ids or from weights outside the layers; the rest is said by `probe_layer`.

Knows no architecture by name.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from edgeweave.errors import ModelNotSupportedError
from edgeweave.model.attention import ATTENTION_NAME
from edgeweave.model.probe_layer import PROBE_NAME, LayerShape, one_line, probe_layer
from edgeweave.model.tree import ModelTree

_NUM_TOKENS: Final = 3


def probe_layers(tree: ModelTree) -> Sequence[LayerShape]:
    """Return the shape of each layer of `tree`; raise `ModelNotSupportedError` with the reason if it cannot be cut."""
    layers = list(tree.layers)
    with _probe_attention(tree):
        calls = _layer_calls(tree, layers)
        return [_shape_of(layer, call, tree=tree) for layer, call in zip(layers, calls, strict=True)]


def probe_cut(tree: ModelTree) -> None:
    """Check that the forward of a cut tree gets along without the weights around its layers.

    Raises `ModelNotSupportedError` where it asks a module for more than its output.
    """
    _walk(tree, inputs_embeds=torch.empty(1, _NUM_TOKENS, tree.config.hidden_size, device="meta"))


class _Carried(torch.Tensor):
    """A tensor that stems from token ids or from weights outside the layers; each operation passes the mark on."""


@dataclass(frozen=True, slots=True)
class _Call:
    """How the model's forward called one layer."""

    index: int
    hidden: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Recorder(nn.Module):
    """Stands in place of the layer list and notes each call."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.calls: list[_Call] = []
        self._slots = [_RecorderSlot(self, index=index, layer=layer) for index, layer in enumerate(layers)]

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator["_RecorderSlot"]:
        return iter(self._slots)

    def __getitem__(self, index: int | slice) -> "_RecorderSlot | list[_RecorderSlot]":
        return self._slots[index]


class _RecorderSlot:
    """Stands for one layer; its other attributes are those of the layer."""

    def __init__(self, recorder: _Recorder, *, index: int, layer: nn.Module) -> None:
        self._recorder = recorder
        self._index = index
        self._layer = layer

    def __call__(self, hidden_states: Any, *args: Any, **kwargs: Any) -> Any:
        calls = self._recorder.calls
        if calls and isinstance(hidden_states, Tensor) and hidden_states.ndim < calls[0].hidden.ndim:
            raise TypeError("its layers return more than the hidden state")  # the forward has indexed into ours
        calls.append(_Call(self._index, hidden_states, args, kwargs))
        return hidden_states

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)


@contextmanager
def _probe_attention(tree: ModelTree) -> Iterator[None]:
    """Let the model attend through the probe."""
    tree.model.set_attn_implementation(PROBE_NAME)
    try:
        yield
    finally:
        tree.model.set_attn_implementation(ATTENTION_NAME)


def _layer_calls(tree: ModelTree, layers: Sequence[nn.Module]) -> Sequence[_Call]:
    recorder = _Recorder(layers)
    tree.replace_layers(recorder)
    hooks = [module.register_forward_hook(_mark) for module in tree.model.modules() if _has_weights(module)]
    ids = torch.zeros(1, _NUM_TOKENS, dtype=torch.int64, device="meta").as_subclass(_Carried)
    try:
        _walk(tree, input_ids=ids)
    finally:
        tree.replace_layers(nn.ModuleList(layers))
        for hook in hooks:
            hook.remove()
    if [call.index for call in recorder.calls] != list(range(len(layers))):
        name = type(tree.model).__name__
        raise ModelNotSupportedError(f"{name} cannot be cut: it does not run its layers once each, in their order")
    return recorder.calls


def _walk(tree: ModelTree, **inputs: Tensor) -> None:
    """Run the forward of `tree` without values; what stands in place of its layers does not compute."""
    positions = torch.arange(_NUM_TOKENS, device="meta").unsqueeze(0)
    # Without a padding mask transformers looks for packed sequences in the positions, which have no values here. This
    # one has values, since models with recurrent layers read them.
    unpadded = torch.ones(1, _NUM_TOKENS, dtype=torch.int64)
    try:
        tree.model.base_model(attention_mask=unpadded, position_ids=positions, use_cache=False, **inputs)
    except Exception as error:  # a foreign forward fails in its own way; the reason is what counts
        raise ModelNotSupportedError(
            f"{type(tree.model).__name__} cannot be cut: around its layers it does more than pass one hidden state on "
            f"({one_line(error)})"
        ) from error


def _has_weights(module: nn.Module) -> bool:
    return next(module.parameters(recurse=False), None) is not None


def _mark(_module: nn.Module, _operands: Any, output: Any) -> Any:
    return output.as_subclass(_Carried) if isinstance(output, Tensor) else output


def _shape_of(layer: nn.Module, call: _Call, *, tree: ModelTree) -> LayerShape:
    what = f"{type(tree.model).__name__} cannot be cut: layer {call.index} ({type(layer).__name__})"
    hidden_size = tree.config.hidden_size
    if not isinstance(call.hidden, Tensor) or call.hidden.shape != (1, _NUM_TOKENS, hidden_size):
        raise ModelNotSupportedError(f"{what} takes more than one residual stream [tokens, {hidden_size}]")
    hidden = call.hidden.as_subclass(Tensor)
    arguments = _named(layer, hidden, call)
    for name, value in arguments.items():
        _check_argument(name, value, what=what)
    return probe_layer(layer, arguments, what=what)


def _named(layer: nn.Module, hidden: Tensor, call: _Call) -> Mapping[str, Any]:
    """Return the arguments of `call` under their names."""
    signature = inspect.signature(layer.forward)
    arguments = signature.bind(hidden, *call.args, **call.kwargs).arguments
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= arguments.pop(parameter.name, {})
    return arguments


def _check_argument(name: str, value: Any, *, what: str) -> None:
    tensors = value if isinstance(value, tuple) else (value,)
    if any(isinstance(tensor, _Carried) for tensor in tensors):
        raise ModelNotSupportedError(f'{what} takes "{name}" beside the hidden state, made of token ids or embeddings')
