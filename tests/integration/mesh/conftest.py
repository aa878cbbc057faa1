"""What the tests of a whole mesh share."""

import pytest

from exact.tally import Tally


@pytest.fixture(scope="module")
def tally() -> Tally:
    """Counts the tokens of a module and the ties among them."""
    return Tally()
