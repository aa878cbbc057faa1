"""Linear layers in panels against plain ones."""

import pytest
import torch
from torch import Tensor, nn

from edgeweave.model.packed import PackedLinear, Packing, PlainLinear, fits_panels, packed
from edgeweave.model.registers import MULTIPLIES_BFLOAT16, WIDTH

if not WIDTH:
    pytest.skip("this processor has no product in panels", allow_module_level=True)

from edgeweave.model.panel_linear import WEIGHTS, PanelLinear, arithmetic_of
from edgeweave.model.panel_product import Arithmetic

ROWS = [*range(15), 16, 23, 25, 31, 33, 100]
"""Few and many, whole groups of rows and what is left of them."""
SHAPES = [(WIDTH, 4), (WIDTH + 1, 8), (2 * WIDTH, 12), (3 * WIDTH - 1, 64), (200, 2000)]
"""Outputs and inputs: whole panels, a last one that reaches back, and one of more than the block that rows share."""
HERE = [kind for kind in Arithmetic if kind is not Arithmetic.BFLOAT16 or MULTIPLIES_BFLOAT16]
ALL = pytest.mark.parametrize("arithmetic", HERE, ids=[kind.name.lower() for kind in HERE])


def linear(num_outputs: int, num_inputs: int, *, bias: bool = True) -> nn.Linear:
    """A layer of random weights."""
    return nn.Linear(num_inputs, num_outputs, bias=bias).requires_grad_(requires_grad=False)


def expected(layer: nn.Linear, operand: Tensor, arithmetic: Arithmetic) -> Tensor:
    """The product with the weight as it is kept, in twice the precision; operands are rounded in one case only."""
    weight = layer.weight.to(WEIGHTS[arithmetic]).double()
    rounded = operand.bfloat16() if arithmetic is Arithmetic.BFLOAT16 else operand
    product = rounded.double() @ weight.T
    return (product + layer.bias.double() if "bias" in dict(layer.named_parameters()) else product).float()


@ALL
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_layer_in_panels_computes_the_same(shape: tuple[int, int], arithmetic: Arithmetic, *, bias: bool) -> None:
    """Any number of rows and outputs."""
    layer = linear(*shape, bias=bias)
    in_panels = PanelLinear(layer, arithmetic)
    for rows in ROWS:
        operand = torch.randn(1, rows, layer.in_features)
        torch.testing.assert_close(in_panels(operand), expected(layer, operand, arithmetic), rtol=1e-5, atol=1e-5)


@ALL
def test_a_row_has_the_same_numbers_in_any_company(arithmetic: Arithmetic) -> None:
    """To the last bit: alone, in each place of a group, and among many."""
    layer = linear(3 * WIDTH, 256)
    in_panels = PanelLinear(layer, arithmetic)
    operand = torch.randn(40, 256)
    alone = torch.cat([in_panels(row) for row in torch.split(operand, 1)])
    for size in (2, 3, 5, 6, 7, 8, 12, 13, 20, 40):
        assert torch.equal(torch.cat([in_panels(rows) for rows in torch.split(operand, size)]), alone)


@pytest.mark.parametrize("num_inputs", [256, 1024, 4096])
def test_little_is_rounded_away(num_inputs: int) -> None:
    """Less than a sum over all inputs one after the other would lose, which grows with their root."""
    torch.manual_seed(num_inputs)
    layer = linear(2 * WIDTH, num_inputs, bias=False)
    operand = torch.randn(50, num_inputs)
    exact = operand.double() @ layer.weight.double().T
    off = (PanelLinear(layer, Arithmetic.FLOAT32)(operand).double() - exact).square().mean().sqrt()
    assert off < 3e-7 * exact.square().mean().sqrt()


def test_what_is_multiplied_where_weights_are_kept_as_a_type() -> None:
    """Operands are rounded to bfloat16 only where the processor multiplies them faster."""
    assert arithmetic_of(torch.float32) is Arithmetic.FLOAT32
    assert arithmetic_of(torch.bfloat16) is HERE[-1]


def test_an_operand_may_be_a_view() -> None:
    """Its rows need not be side by side, and it may have any number of dimensions."""
    layer = linear(WIDTH, 8)
    operand = torch.randn(2, 8, 3).transpose(1, 2)
    torch.testing.assert_close(PanelLinear(layer, Arithmetic.FLOAT32)(operand), layer(operand))


@pytest.mark.parametrize("operand", [torch.zeros(1, 8, dtype=torch.float64), torch.zeros(1, 12)])
def test_an_operand_of_another_type_or_size_is_an_error(operand: Tensor) -> None:
    """Not what happens to lie in memory."""
    with pytest.raises(RuntimeError, match="8 float32 inputs"):
        PanelLinear(linear(WIDTH, 8), Arithmetic.FLOAT32)(operand)


@ALL
@pytest.mark.parametrize("shape", SHAPES)
def test_the_weight_can_be_read_back(shape: tuple[int, int], arithmetic: Arithmetic) -> None:
    """As it is kept."""
    layer = linear(*shape)
    assert torch.equal(PanelLinear(layer, arithmetic).weight, layer.weight.to(WEIGHTS[arithmetic]))


@pytest.mark.parametrize(
    ("shape", "fits"), [((WIDTH, 4), True), ((WIDTH - 1, 4), False), ((WIDTH, 6), False), ((WIDTH, 0), False)]
)
def test_what_fits_into_panels(shape: tuple[int, int], *, fits: bool) -> None:
    """At least a panel of outputs, and inputs that go into the product a few at once."""
    assert fits_panels(torch.zeros(shape), torch.float32) is fits


def test_other_types_do_not_fit() -> None:
    """A layer of float32 whose weight is kept as it is or as bfloat16."""
    weight = torch.zeros(WIDTH, 4)
    assert not fits_panels(weight, torch.float16)
    assert not fits_panels(weight.bfloat16(), torch.bfloat16)
    assert not fits_panels(weight.to("meta"), torch.float32)


@pytest.mark.parametrize("weights_dtype", [None, torch.bfloat16])
def test_one_core_takes_panels_where_a_layer_fits(weights_dtype: torch.dtype | None) -> None:
    """What does not fit, and what several threads compute, is laid out otherwise."""
    one_core, several = (Packing(1, weights_dtype, on_one_core=on_one_core) for on_one_core in (True, False))
    assert type(packed(linear(WIDTH, 4), one_core)) is PanelLinear
    others = {PackedLinear, PlainLinear}
    assert type(packed(linear(WIDTH, 6), one_core)) in others
    assert type(packed(linear(WIDTH, 4), several)) in others
