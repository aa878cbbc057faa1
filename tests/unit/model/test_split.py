"""Splits in text and their bodies."""

import pytest

from edgeweave.errors import SplitError
from edgeweave.interleave.nouns import Segment
from edgeweave.interleave.split import Split


def test_the_text_of_a_split_reads_back() -> None:
    """What settings say and what logs print is one form."""
    assert Split.parse(" 3:1 ") == Split(3, 1)
    assert str(Split(3, 1)) == "3:1"


@pytest.mark.parametrize("text", ["", "1", "1:", ":1", "a:b", "1:1:1", "-1:2", "1.5:1"])
def test_other_text_is_refused(text: str) -> None:
    """The error shows the text and the form."""
    with pytest.raises(SplitError, match="head:tail"):
        Split.parse(text)


@pytest.mark.parametrize(("head", "tail"), [(0, 1), (1, 0), (-1, 1)])
def test_each_end_keeps_a_layer(head: int, tail: int) -> None:
    """Embeddings name tokens, and last hidden states name the next: neither crosses the link."""
    with pytest.raises(SplitError, match="at least 1"):
        Split(head, tail)


def test_the_body_is_what_the_edge_leaves() -> None:
    """Every layer has exactly one place."""
    assert Split(2, 3).body(6) == Segment(2, 3)
    with pytest.raises(SplitError, match="no layer of a model of 5"):
        Split(2, 3).body(5)
