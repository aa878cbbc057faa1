"""The attention function that transformers' models call, and its names in their registry.

transformers looks attention functions up by name and hands each the attention module of the layer. Ours finds at
that module, as the attribute `edgeweave_kv`, what holds the layer's keys and values, and lets it attend. Masks are not
built: the models' own mask code returns none for a name that has no mask function.

Knows the registry. Does not know rows or blocks.
"""

from typing import Any, Final, Protocol, TypedDict

from torch import Tensor, nn
from transformers import AttentionInterface

ATTENTION_NAME: Final = "edgeweave"
KV_ATTRIBUTE: Final = "edgeweave_kv"


class AttentionRule(TypedDict):
    """How one layer weighs keys; `None` where it does not use the rule."""

    scaling: float
    sliding_window: int | None
    softcap: float | None
    sinks: Tensor | None  # [heads]


class Attends(Protocol):
    """What an attention module carries under `edgeweave_kv`."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor:
        """Take query, key and value [1, heads, tokens, dim] and return [1, tokens, heads, value dim]."""
        ...


def attend(  # noqa: PLR0913, PLR0917  the signature is transformers' own
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: object,  # noqa: ARG001  some models give it by name
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attend with the keys and values that `module` carries; the signature is transformers' own."""
    kv: Attends = getattr(module, KV_ATTRIBUTE)
    rule = AttentionRule(
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        sliding_window=sliding_window,
        softcap=softcap,
        sinks=s_aux,
    )
    return kv.attend(query, key, value, rule), None


AttentionInterface.register(ATTENTION_NAME, attend)
