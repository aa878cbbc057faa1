"""Which processors have products in panels, and how wide."""

from collections.abc import Mapping

import pytest

from edgeweave.model.registers import floats_in_register


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
