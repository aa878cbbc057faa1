"""What the demo calls equal."""

from edgeweave.cli.comparison import differences


def test_equal_outputs_have_no_differences() -> None:
    """Nothing is said of outputs that are the same."""
    assert differences([(1, 2), (3,)], [(1, 2), (3,)]) == []


def test_each_wrong_output_is_told_at_its_first_wrong_token() -> None:
    """Another token, a missing one and one too many are each told, with both sides."""
    assert differences([(1, 2, 3), (1,), (1, 2), (7,)], [(1, 5, 6), (1, 2), (1,), (7,)]) == [
        "answer 1, token 1: 2 here, 5 in one process",
        "answer 2, token 1: none here, 2 in one process",
        "answer 3, token 1: 2 here, none in one process",
    ]
