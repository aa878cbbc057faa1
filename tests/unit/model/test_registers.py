"""Which processors have products in panels, and how wide."""

from collections.abc import Mapping

import pytest

from edgeweave.model.registers import floats_in_register, multiplies_bfloat16, vector_registers


@pytest.mark.parametrize(
    ("machine", "features", "floats"),
    [
        ("x86_64", {"fma": True, "avx2": True}, 8),
        ("x86_64", {"fma": True, "avx512f": True}, 16),
        ("x86_64", {"fma": False, "avx": True}, 0),
        ("x86_64", {}, 0),
        ("aarch64", {}, 4),
    ],
)
def test_registers_by_processor(machine: str, features: Mapping[str, bool], floats: int) -> None:
    """Where products and sums are two instructions, panels have no use."""
    assert floats_in_register(machine, features) == floats


@pytest.mark.parametrize(("machine", "floats", "registers"), [("x86_64", 8, 16), ("x86_64", 16, 32), ("arm64", 4, 32)])
def test_how_many_registers_there_are(machine: str, floats: int, registers: int) -> None:
    """Sums of more rows stay in them where there are more."""
    assert vector_registers(machine, floats) == registers


@pytest.mark.parametrize(
    ("features", "multiplies"), [({"avx512bf16": True}, True), ({"avx512bf16": False}, False), ({}, False)]
)
def test_which_processors_multiply_bfloat16(features: Mapping[str, bool], *, multiplies: bool) -> None:
    assert multiplies_bfloat16(features) is multiplies
