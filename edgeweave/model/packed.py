"""Linear layers for the CPU, with weights laid out as its kernels read them.

With a few rows, as in a decode step, a plain product of a large matrix runs at a fraction of the memory's speed; with
the weight reordered once by oneDNN it runs near it. Small matrices are left alone: there the call itself costs more.

Knows torch's CPU kernels. Does not know models.
"""

from typing import Final

import torch
from torch import Tensor, nn

PACK_FROM: Final = 800_000
"""Elements of a weight from which packing pays: about a tenth slower at 1 row, a third faster from 4 rows on."""

_TYPICAL_ROWS: Final = 8


class PackedLinear(nn.Module):
    """A linear layer whose weight is packed; it computes what `nn.Linear` does, up to the order of sums."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.bias = linear.bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight, _TYPICAL_ROWS)  # noqa: SLF001  no other way

    @property
    def weight(self) -> Tensor:
        """The weight [out, in], unpacked anew for a model that computes with it by itself."""
        weight: Tensor = self._packed.to_dense()
        return weight

    def forward(self, operand: Tensor) -> Tensor:
        """Map [..., in] to [..., out]."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(operand, self._packed, self.bias, "none", [], "")  # noqa: SLF001  no other way
        return product


@torch.inference_mode()
def pack_linears(module: nn.Module, *, from_elements: int) -> None:
    """Replace each linear layer below `module` whose weight has at least `from_elements` by a packed one.

    Nothing changes where the weights are not on the CPU, or of a type that oneDNN does not compute with here. A head
    that is tied to the embedding gets a packed copy.
    """
    for name, child in module.named_children():
        if type(child) is nn.Linear and child.weight.numel() >= from_elements and _can_pack(child.weight):
            setattr(module, name, PackedLinear(child))
        else:
            pack_linears(child, from_elements=from_elements)


def _can_pack(weight: Tensor) -> bool:
    has_kernels = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # untyped there
    if weight.device.type != "cpu" or not has_kernels:
        return False
    if weight.dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001  no other way
    return weight.dtype is torch.float32
