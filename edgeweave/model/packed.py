"""Linear layers laid out for the device: what takes the place of `nn.Linear` once a model is loaded.

With a few rows, as in a decode step, a plain product of a large matrix runs on a CPU at a fraction of the memory's
speed. With the weight laid out once it runs near it, and a prefill gains too: in panels, where one thread computes in
float32, else by oneDNN. Small matrices are left alone: there the call itself costs more. Weights may be kept as another
type than the one that is computed with around them.

Knows torch's kernels, and which layout is for which processes. Does not know models.
"""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import linear as product_of

from edgeweave.model.registers import INPUTS_AT_ONCE, WIDTH

PANELS_FROM: Final = 4_000
"""Elements of a weight from which panels pay, with few rows and with many: nearly always."""
PACK_FROM: Final = 200_000
"""The same for oneDNN, whose calls cost more."""

_TYPICAL_ROWS: Final = 8
_PANEL_DTYPES: Final = (torch.float32, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Packing:
    """What is packed: weights of at least `from_elements`, all of them kept as `weights_dtype` if that is given.

    `None`: where it pays. `on_one_core` lets weights lie in panels, whose products one thread computes.
    """

    from_elements: int | None = None
    weights_dtype: torch.dtype | None = None
    on_one_core: bool = False

    def takes(self, linear: nn.Linear, least: int) -> bool:
        """Return whether `linear` is packed in a way that pays from `least` elements on."""
        return linear.weight.numel() >= (least if self.from_elements is None else self.from_elements)

    def keeps(self, weight: Tensor) -> torch.dtype:
        """Return the type that `weight` is kept as."""
        return self.weights_dtype or weight.dtype


class PackedLinear(nn.Module):
    """A linear layer whose weight is packed; it computes what `nn.Linear` does, up to the order of sums.

    A weight of another type than `dtype`, the one of operands and results, is multiplied in its own.
    """

    def __init__(self, linear: nn.Linear, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        kept = dtype or linear.weight.dtype
        self.bias = linear.bias
        self._operand_dtype = None if kept is linear.weight.dtype else kept
        weight = linear.weight.to(kept)
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)  # noqa: SLF001  no other way
        self._packed_bias = _bias(linear, kept)

    @property
    def weight(self) -> Tensor:
        """The weight [out, in], unpacked anew for a model that computes with it by itself."""
        weight: Tensor = self._packed.to_dense()
        return weight

    def forward(self, operand: Tensor) -> Tensor:
        """Map [..., in] to [..., out]."""
        if self._operand_dtype is None:
            return self._product(operand)
        return self._product(operand.to(self._operand_dtype)).to(operand.dtype)

    def _product(self, operand: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(operand, self._packed, self._packed_bias, "none", [], "")  # noqa: SLF001  no other way
        return product


class PlainLinear(nn.Module):
    """A linear layer whose weight has another type than operands and results; it is multiplied in its own."""

    def __init__(self, linear: nn.Linear, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.weight = nn.Parameter(linear.weight.to(dtype), requires_grad=False)
        self.bias = linear.bias
        self._product_bias = _bias(linear, dtype)

    def forward(self, operand: Tensor) -> Tensor:
        """Map [..., in] to [..., out]."""
        return product_of(operand.to(self.weight.dtype), self.weight, self._product_bias).to(operand.dtype)


@torch.inference_mode()
def pack_linears(module: nn.Module, packing: Packing) -> None:
    """Replace each linear layer below `module` that is to be packed, or kept as another type.

    A weight that is large enough is packed unless it is not on the CPU, or of a type that oneDNN does not compute with
    here. A head that is tied to the embedding gets a copy.
    """
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, packed(child, packing))
        else:
            pack_linears(child, packing)


@torch.inference_mode()
def packed(linear: nn.Linear, packing: Packing) -> nn.Module:
    """Return what takes the place of `linear`: itself where nothing is to be gained."""
    dtype = packing.keeps(linear.weight)
    if packing.on_one_core and packing.takes(linear, PANELS_FROM) and fits_panels(linear.weight, dtype):
        from edgeweave.model.panel_linear import PanelLinear, arithmetic_of  # noqa: PLC0415  importing it compiles it

        return PanelLinear(linear, arithmetic_of(dtype))
    if packing.takes(linear, PACK_FROM) and _can_pack(linear.weight, dtype):
        return PackedLinear(linear, dtype=dtype)
    return linear if dtype is linear.weight.dtype else PlainLinear(linear, dtype=dtype)


def fits_panels(weight: Tensor, dtype: torch.dtype) -> bool:
    """Return whether `weight` [out, in] of a layer can lie in panels of `dtype`, and this processor has products."""
    if not WIDTH or weight.device.type != "cpu" or weight.dtype is not torch.float32 or dtype not in _PANEL_DTYPES:
        return False
    num_outputs, num_inputs = weight.shape
    return num_inputs % INPUTS_AT_ONCE == 0 and num_inputs > 0 and num_outputs >= WIDTH


def _bias(linear: nn.Linear, dtype: torch.dtype) -> Tensor | None:
    bias: Tensor | None = linear.bias  # torch's own type forgets that there may be none
    return None if bias is None else bias.to(dtype)


def _can_pack(weight: Tensor, dtype: torch.dtype) -> bool:
    has_kernels = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # untyped there
    if weight.device.type != "cpu" or not has_kernels:
        return False
    if dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001  no other way
    return dtype is torch.float32
