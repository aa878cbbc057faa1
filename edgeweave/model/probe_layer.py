"""What one layer stores for each token, found by running it without weights up to its attention.

A layer must keep keys and values and nothing more, attend once through transformers' attention interface, and use a
mask that is causal, or causal with a sliding window that attention is told of.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from edgeweave.errors import ModelNotSupportedError

PROBE_NAME: Final = "edgeweave-probe"

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
    reached = _run_to_attention(layer, arguments, what=what)
    num_tokens = reached.query.shape[2]
    if reached.key.shape[2] != num_tokens or reached.value.shape[2] != num_tokens:
        raise ModelNotSupportedError(f"{what} does not store one key and one value for each token")
    for name, value in reached.told.items():
        if isinstance(value, Tensor) and name not in _APPLIED | _WITHOUT_EFFECT:
            raise ModelNotSupportedError(f'{what} weighs its keys by "{name}", which edgeweave does not apply')
    if not _is_causal(reached.mask, window=reached.told.get("sliding_window")):
        raise ModelNotSupportedError(f"{what} uses a mask that is neither causal nor a sliding window")
    return LayerShape(reached.module, reached.key.shape[1], reached.key.shape[3], reached.value.shape[3])


class _AttentionReached(Exception):  # noqa: N818  not an error: it ends the look at a layer
    """Carries what attention was called with out of a layer."""

    def __init__(self, module: nn.Module, mask: Any, told: dict[str, Any], *tensors: Tensor) -> None:
        super().__init__()
        self.module = module
        self.mask = mask
        self.told = told
        self.query, self.key, self.value = tensors  # [1, heads, tokens, dim]


class _CacheWatch:
    """Stands for a cache and notes what a layer asks of it besides storing keys and values."""

    def __init__(self) -> None:
        self.other_uses: list[str] = []

    def update(self, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Return what was given, as a cache that is empty does."""
        return key, value

    def __getattr__(self, name: str) -> Any:
        self.other_uses.append(name)
        raise AttributeError(name)


def _run_to_attention(layer: nn.Module, arguments: Mapping[str, Any], *, what: str) -> _AttentionReached:
    watch = _CacheWatch()
    watched = {name: watch for name in _CACHE_ARGUMENTS if name in arguments}
    cause: Exception | None = None
    try:
        layer(**{**arguments, **watched})
    except _AttentionReached as reached:
        if not watch.other_uses:
            return reached
    except Exception as error:  # noqa: BLE001  a foreign layer fails in its own way; the reason is what counts
        cause = error
    if watch.other_uses:
        reason = f'keeps a state besides keys and values (it uses "{watch.other_uses[0]}" of the cache)'
    elif cause:
        reason = f"cannot be followed to its attention ({one_line(cause)})"
    else:
        reason = "does not attend through transformers' attention interface"
    raise ModelNotSupportedError(f"{what} {reason}") from cause


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
    return torch.equal(mask(zero, zero, queries, keys).broadcast_to(expected.shape), expected)


def one_line(error: Exception) -> str:
    """Return the first line of what `error` says, after its type."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _stop_at_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **told: Any
) -> tuple[Tensor, None]:
    raise _AttentionReached(module, mask, told, query, key, value)


def _mask_as_function(*_: Any, mask_function: Any, **__: Any) -> Any:
    return mask_function


AttentionInterface.register(PROBE_NAME, _stop_at_attention)
AttentionMaskInterface.register(PROBE_NAME, _mask_as_function)
