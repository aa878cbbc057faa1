"""The shape that most decoder layers have, found in transformers' module tree.

Norm, attention with rotary positions, norm, gated MLP; attention and MLP are added to the residual stream. Where a
layer has exactly these modules, and nothing besides, `common_layer` names them. Whether the layer's own forward does
with them what the shape says is for `direct` to find out.

Knows names of modules, as most models have them. Knows no architecture by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import torch
from torch import Tensor, nn

_LAYER: Final = frozenset({"input_layernorm", "self_attn", "post_attention_layernorm", "mlp"})
_PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj")
_ATTENTION: Final = frozenset({*_PROJECTIONS, "o_proj"})
_HEAD_NORMS: Final = frozenset({"q_norm", "k_norm"})
_MLP: Final = frozenset({"gate_proj", "up_proj", "down_proj", "act_fn"})


@dataclass(frozen=True, slots=True)
class Norm:
    """A root-mean-square norm over the last dimension."""

    weight: Tensor
    epsilon: float

    def __call__(self, hidden: Tensor) -> Tensor:
        """Return `hidden`, normalized and weighed."""
        return torch.nn.functional.rms_norm(hidden, self.weight.shape, self.weight, self.epsilon)


@dataclass(frozen=True, slots=True)
class CommonLayer:
    """The modules of a layer of the common shape; linear layers that take the same operand are joined."""

    input_norm: Norm
    queries_keys_values: nn.Linear
    query_norm: Norm | None
    key_norm: Norm | None
    output: nn.Linear
    mlp_norm: Norm
    gate_up: nn.Linear
    activation: nn.Module
    down: nn.Linear


def common_layer(layer: nn.Module) -> CommonLayer | None:
    """Return the modules of `layer`, `None` where it is not of the common shape."""
    children = _children(layer, _LAYER)
    attention = _children(children["self_attn"], _ATTENTION, _HEAD_NORMS) if children else None
    mlp = _children(children["mlp"], _MLP) if children else None
    if not (children and attention and mlp):
        return None
    norms = {**{name: children[name] for name in sorted(_LAYER) if name.endswith("norm")}, **attention}
    read = {name: _norm(module) for name, module in norms.items() if name.endswith("norm")}
    linears = [module for name, module in (*attention.items(), *mlp.items()) if name.endswith("_proj")]
    if None in read.values() or any(type(linear) is not nn.Linear for linear in linears):
        return None
    return CommonLayer(
        input_norm=cast("Norm", read["input_layernorm"]),
        queries_keys_values=_joined([attention[name] for name in _PROJECTIONS]),
        query_norm=read.get("q_norm"),
        key_norm=read.get("k_norm"),
        output=cast("nn.Linear", attention["o_proj"]),
        mlp_norm=cast("Norm", read["post_attention_layernorm"]),
        gate_up=_joined([mlp["gate_proj"], mlp["up_proj"]]),
        activation=mlp["act_fn"],
        down=cast("nn.Linear", mlp["down_proj"]),
    )


def _children(module: nn.Module, names: frozenset[str], more: frozenset[str] = frozenset()) -> dict[str, nn.Module]:
    """Return the children of `module`: `names`, and all or none of `more`; nothing where it has others, or weights."""
    children = dict(module.named_children())
    own = (
        next(module.parameters(recurse=False), None) is not None
        or next(module.buffers(recurse=False), None) is not None
    )
    return {} if own or children.keys() not in (names, names | more) else children


def _norm(module: nn.Module) -> Norm | None:
    """Return `module` as a norm, `None` where it cannot be one."""
    epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    weights = dict(module.named_parameters())
    if not isinstance(epsilon, float) or weights.keys() != {"weight"} or weights["weight"].ndim != 1:
        return None
    return Norm(weights["weight"], epsilon)


def _joined(modules: Sequence[nn.Module]) -> nn.Linear:
    """Return one linear layer that gives the outputs of `modules`, linear layers of one operand, side by side."""
    linears = [cast("nn.Linear", module) for module in modules]
    weight = torch.cat([linear.weight for linear in linears])
    has_bias = any("bias" in dict(linear.named_parameters()) for linear in linears)
    joined = nn.Linear(weight.shape[1], weight.shape[0], bias=has_bias, device="meta")
    joined.weight = nn.Parameter(weight, requires_grad=False)
    if has_bias:
        joined.bias = nn.Parameter(torch.cat([bias_of(linear) for linear in linears]), requires_grad=False)
    return joined


def bias_of(linear: nn.Linear) -> Tensor:
    """Return what `linear` adds to its products, [out]: zeros where it has no bias."""
    bias: Tensor | None = linear.bias  # torch's own type forgets that there may be none
    return linear.weight.new_zeros(linear.out_features) if bias is None else bias
