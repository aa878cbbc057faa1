"""Packed linear layers against plain ones."""

import pytest
import torch
from torch import nn

from edgeweave.model.packed import PackedLinear, Packing, pack_linears


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_packed_layer_computes_the_same(rows: int, *, bias: bool) -> None:
    """Any number of rows, with and without bias, also from a view that is not contiguous."""
    linear = nn.Linear(6, 4, bias=bias).requires_grad_(requires_grad=False)
    operand = torch.randn(1, 6, rows).transpose(1, 2)
    torch.testing.assert_close(PackedLinear(linear)(operand), linear(operand))
    assert torch.equal(PackedLinear(linear).weight, linear.weight)


def test_large_layers_only_are_packed() -> None:
    """The border counts elements; subclasses of `nn.Linear` have their own arithmetic and stay."""

    class Scaled(nn.Linear):
        pass

    inner = nn.Sequential(nn.Linear(4, 10))
    model = nn.Sequential(nn.Linear(6, 4), inner, Scaled(10, 10))
    pack_linears(model, Packing(40))
    assert [type(module) for module in (model[0], inner[0], model[2])] == [nn.Linear, PackedLinear, Scaled]


def test_other_types_stay_as_they_are() -> None:
    """Half precision has no packed kernel on the CPU."""
    model = nn.Sequential(nn.Linear(8, 8, dtype=torch.float16))
    pack_linears(model, Packing(1))
    assert type(model[0]) is nn.Linear


@pytest.mark.parametrize("from_elements", [1, 1_000], ids=["packed", "plain"])
@pytest.mark.parametrize("bias", [True, False])
def test_weights_of_another_type_are_multiplied_in_it(from_elements: int, *, bias: bool) -> None:
    """Operands and results keep their type; the product is that of rounded operands."""
    plain = nn.Linear(32, 16, bias=bias).requires_grad_(requires_grad=False)
    model = nn.Sequential(plain)
    pack_linears(model, Packing(from_elements, torch.bfloat16))
    operand = torch.randn(5, 32)
    product = model(operand)
    assert (product.dtype, model[0].weight.dtype) == (torch.float32, torch.bfloat16)
    expected = operand.bfloat16().float() @ plain.weight.bfloat16().float().T + (plain.bias if bias else 0)
    torch.testing.assert_close(product, expected, rtol=0.02, atol=0.02)
