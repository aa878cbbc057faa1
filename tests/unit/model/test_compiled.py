"""Functions that are compiled when they are imported."""

import pytest

from edgeweave.model.compiled import compiled


def test_a_closure_is_refused() -> None:
    """It would be found on the disk by no later start, and kept there once more by each."""
    number = 3

    def times_three(value: int) -> int:
        return number * value

    with pytest.raises(TypeError, match="times_three holds variables"):
        compiled("int64(int64)")(times_three)
