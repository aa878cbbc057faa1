"""What one layer stores for each token, found by running it without weights up to its attention.

A layer must keep keys and values and nothing more, exchange nothing with other layers, attend once through the
interface of transformers, and use a mask that is causal, or causal with a sliding window that attention is told of.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from edgeweave.errors import ModelNotSupportedError

PROBE_NAME: Final = "edgeweave-probe"

_WATCH_ATTRIBUTE: Final = "edgeweave_watch"
_CACHE_ARGUMENTS: Final = ("cache", "past_key_values", "past_key_value", "layer_past")
_APPLIED: Final = frozenset({"scaling", "sliding_window", "softcap", "s_aux"})
# Keys are already rotated when attention sees them, so positions change nothing there.
_WITHOUT_EFFECT: Final = frozenset({"position_ids", "position_embeddings", "cache_position"})


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What a layer stores for each token, and its module that attends."""

    attention: nn.Module
    kv_heads: int
    key_dim: int
    value_dim: int


def probe_layer(layer: nn.Module, arguments: Mapping[str, Any], *, what: str) -> LayerShape:
    """Return the shape of `layer`, called with `arguments`; raise `ModelNotSupportedError` that begins with `what`."""
    seen = _run(layer, arguments, what=what)
    if seen.key.shape[2] != seen.num_tokens or seen.value.shape[2] != seen.num_tokens:
        raise ModelNotSupportedError(f"{what} does not store one key and one value for each token")
    for name, value in seen.told.items():
        if isinstance(value, Tensor) and name not in _APPLIED | _WITHOUT_EFFECT:
            raise ModelNotSupportedError(f'{what} weighs its keys by "{name}", which edgeweave does not apply')
    if not _is_causal(seen.mask, window=seen.told.get("sliding_window")):
        raise ModelNotSupportedError(f"{what} uses a mask that is neither causal nor a sliding window")
    return LayerShape(seen.module, seen.key.shape[1], seen.key.shape[3], seen.value.shape[3])


@dataclass(frozen=True, slots=True)
class _Attention:
    """What attention was called with."""

    module: nn.Module
    num_tokens: int
    key: Tensor  # [1, kv heads, tokens, key dim]
    value: Tensor  # [1, kv heads, tokens, value dim]
    mask: Any
    told: dict[str, Any]


class _Exchange(dict[Any, Any]):
    """Stands for a mapping that all layers are given, and notes whether this one touches it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_touched = False

    def __getitem__(self, key: Any) -> Any:
        self.is_touched = True
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.is_touched = True


class _Watch:
    """Stands for a layer's cache and its attention, and notes how the layer uses them."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.attentions: list[_Attention] = []
        self.other_uses: list[str] = []
        self.exchanges = {name: _Exchange() for name, value in arguments.items() if isinstance(value, dict)}

    def update(self, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Return what was given, as a cache that is empty does."""
        return key, value

    def __getattr__(self, name: str) -> Any:
        self.other_uses.append(name)
        raise AttributeError(name)


def _run(layer: nn.Module, arguments: Mapping[str, Any], *, what: str) -> _Attention:
    """Run `layer` and return its one call of attention.

    What fails after that call does not matter: experts, for one, read values, which there are none of.
    """
    watch = _Watch(arguments)
    for module in layer.modules():
        setattr(module, _WATCH_ATTRIBUTE, watch)
    watched = {name: watch for name in _CACHE_ARGUMENTS if name in arguments}
    failure: Exception | None = None
    output: object = None
    try:
        output = layer(**{**arguments, **watch.exchanges, **watched})
    except Exception as error:  # noqa: BLE001  a foreign layer fails in its own way; the reason is what counts
        failure = error
    for module in layer.modules():
        delattr(module, _WATCH_ATTRIBUTE)
    reason = _reason_against(watch, output, failure)
    if reason:
        raise ModelNotSupportedError(f"{what} {reason}") from failure
    return watch.attentions[0]


def _reason_against(watch: _Watch, output: object, failure: Exception | None) -> str | None:
    for name, exchange in watch.exchanges.items():
        if exchange.is_touched:
            return f'exchanges "{name}" with other layers beside the hidden state'
    if watch.other_uses:
        return f'keeps a state besides keys and values (it uses "{watch.other_uses[0]}" of the cache)'
    if not watch.attentions and failure:
        return f"cannot be followed to its attention ({one_line(failure)})"
    if len(watch.attentions) != 1:
        return f"attends {len(watch.attentions)} times through transformers' attention interface, not once"
    if not failure and not isinstance(output, Tensor):
        return "returns more than the hidden state"
    return None


def _is_causal(mask: Any, *, window: int | None) -> bool:
    """Return whether `mask`, a mask function of transformers or None, is causal within `window` at sampled places."""
    if mask is None:
        return True
    edges = {0, 1, 2, 7, 100, 4095, 4096, 8192, 20_000}
    edges |= {max(0, n * window + d) for n in (1, 2) for d in (-1, 0, 1)} if window else set()
    places = torch.tensor(sorted(edges))
    queries, keys = places.unsqueeze(1), places.unsqueeze(0)
    expected = keys <= queries
    if window is not None:
        expected &= keys > queries - window
    zero = torch.zeros((), dtype=torch.int64)
    try:
        allowed = mask(zero, zero, queries, keys)
    except RuntimeError:  # it reads tensors of its own, as masks by chunks do; causal ones compare positions only
        return False
    return torch.equal(allowed.broadcast_to(expected.shape), expected)


def one_line(error: Exception) -> str:
    """Return the first line of what `error` says, after its type."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _note_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **told: Any
) -> tuple[Tensor, None]:
    watch: _Watch = getattr(module, _WATCH_ATTRIBUTE)
    watch.attentions.append(_Attention(module, query.shape[2], key, value, attention_mask, told))
    return query.new_empty(1, query.shape[2], query.shape[1], value.shape[3]), None


def _mask_as_function(*_: Any, mask_function: Any, **__: Any) -> Any:
    return mask_function


AttentionInterface.register(PROBE_NAME, _note_attention)
AttentionMaskInterface.register(PROBE_NAME, _mask_as_function)
