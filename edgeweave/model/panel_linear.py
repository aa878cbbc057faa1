"""A linear layer whose weight lies in panels: what `panel_product` multiplies with.

Knows tensors and their layout. Does not know the arithmetic.
"""

from typing import Final

import torch
from torch import Tensor, nn

from edgeweave.model import panel_product
from edgeweave.model.common_layer import bias_of
from edgeweave.model.panel_product import Arithmetic
from edgeweave.model.registers import MULTIPLIES_BFLOAT16, WIDTH

WEIGHTS: Final = {
    Arithmetic.FLOAT32: torch.float32,
    Arithmetic.FLOAT32_WITH_BFLOAT16: torch.bfloat16,
    Arithmetic.BFLOAT16: torch.bfloat16,
}
"""The type of weights by what is multiplied."""


def arithmetic_of(dtype: torch.dtype) -> Arithmetic:
    """Return what is multiplied here where weights are kept as `dtype`."""
    if dtype is torch.float32:
        return Arithmetic.FLOAT32
    return Arithmetic.BFLOAT16 if MULTIPLIES_BFLOAT16 else Arithmetic.FLOAT32_WITH_BFLOAT16


class PanelLinear(nn.Module):
    """A linear layer of float32 on one core; its weight is kept as `arithmetic` says. It fits into panels.

    It computes what `nn.Linear` does with the weight as it is kept, up to the order of sums; operands are rounded to
    bfloat16 where those are multiplied.
    """

    def __init__(self, linear: nn.Linear, arithmetic: Arithmetic) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.bias = linear.bias
        self._panels = _panels(linear.weight.to(WEIGHTS[arithmetic]))
        self._offset = bias_of(linear).detach().contiguous()
        self._arithmetic = int(arithmetic)

    @property
    def weight(self) -> Tensor:
        """The weight [out, in], gathered anew for a model that computes with it by itself."""
        weight = self._panels.new_empty(self.out_features, self.in_features)
        for of_weight, panels in _pairs(weight, self._panels):
            of_weight.copy_(panels)
        return weight

    def forward(self, operand: Tensor) -> Tensor:
        """Map [..., in] to [..., out]."""
        if operand.dtype is not torch.float32 or operand.shape[-1] != self.in_features:
            raise RuntimeError(
                f"{operand.dtype} {tuple(operand.shape)} for a layer of {self.in_features} float32 inputs"
            )
        product = operand.new_empty(*operand.shape[:-1], self.out_features)
        num_rows = operand.numel() // self.in_features
        if num_rows:
            rows = self._laid_out(operand, num_rows)
            addresses = rows.data_ptr(), self._panels.data_ptr(), self._offset.data_ptr(), product.data_ptr()
            sizes = num_rows, self.in_features, self.out_features, self._arithmetic
            panel_product.multiply(*addresses, *sizes)
        return product

    def _laid_out(self, operand: Tensor, num_rows: int) -> Tensor:
        rows = (operand.bfloat16() if self._arithmetic == Arithmetic.BFLOAT16 else operand).contiguous()
        if num_rows == 1:
            return rows
        laid_out = torch.empty_like(rows)
        sizes = num_rows, self.in_features, self._arithmetic
        panel_product.lay_out(rows.data_ptr(), laid_out.data_ptr(), *sizes)
        return laid_out


def _panels(weight: Tensor) -> Tensor:
    """Return `weight` [out, in] as panels [panels, in / n, width, n]; n weights are a word.

    The last one reaches back so far that it is full.
    """
    num_outputs, num_inputs = weight.shape
    in_word = torch.float32.itemsize // weight.itemsize
    panels = weight.new_empty(-(-num_outputs // WIDTH), num_inputs // in_word, WIDTH, in_word)
    for of_weight, some in _pairs(weight, panels):
        some.copy_(of_weight)
    return panels


def _pairs(weight: Tensor, panels: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return the same numbers of `weight` and `panels`, each pair of one shape: whole panels, and the last ones."""
    num_whole, in_word = len(weight) // WIDTH, panels.shape[-1]
    whole = weight[: num_whole * WIDTH].view(num_whole, WIDTH, -1, in_word).transpose(1, 2)
    last = weight[-WIDTH:].view(WIDTH, -1, in_word).transpose(0, 1)
    return [(whole, panels[:num_whole]), (last, panels[-1])]
