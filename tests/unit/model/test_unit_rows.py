"""Where the rows of a unit are, and which of them one call of attention can take."""

import torch

from edgeweave.interleave.nouns import Row
from edgeweave.model.bands import Band
from edgeweave.model.unit_rows import UnitRows

CPU = torch.device("cpu")


def _placed(*rows: tuple[int, int, int]) -> UnitRows:
    """Return rows given as (start, stop, base)."""
    of = [Row(number, start, stop) for number, (start, stop, _) in enumerate(rows)]
    return UnitRows.place(of, [base for *_, base in rows], device=CPU)


def test_equal_lengths_equally_far_apart_are_one_band() -> None:
    """A step over sequences that lie side by side is one call."""
    unit = _placed((7, 8, 0), (7, 8, 64), (7, 8, 128))
    assert unit.bands.bands == (Band(7, 0, step=64, num_rows=3),)
    assert unit.bands.tokens.tolist() == [0, 1, 2]
    assert unit.slots.tolist() == [7, 71, 135]


def test_other_lengths_and_other_distances_begin_a_band() -> None:
    """Nothing is read that does not belong to a sequence."""
    unit = _placed((7, 8, 0), (7, 8, 64), (7, 8, 100), (3, 4, 200), (3, 4, 210))
    assert unit.bands.bands == (
        Band(3, 200, step=10, num_rows=2),
        Band(7, 0, step=64, num_rows=2),
        Band(7, 100),
    )
    assert unit.bands.tokens.tolist() == [3, 4, 0, 1, 2]


def test_bands_follow_the_cache_and_say_where_their_tokens_are() -> None:
    """The order of a step is the scheduler's, and chunks lie between its rows."""
    unit = _placed((5, 6, 80), (0, 4, 200), (5, 6, 0), (5, 6, 40))
    assert unit.bands.bands == (Band(5, 0, step=40, num_rows=3),)
    assert unit.bands.tokens.tolist() == [5, 6, 0]
    assert [(row.packed_start, row.packed_stop) for row in unit.rows] == [(1, 5)]


def test_rows_of_one_token_are_a_table_of_any_lengths() -> None:
    """Where each is in the unit, and what it sees of the cache, all of it or a window."""
    table = _placed((9, 10, 80), (0, 4, 200), (2, 3, 0)).table
    assert table.tokens.tolist() == [0, 5]
    assert table.stops.tolist() == [90, 3]
    assert table.first_keys(None).tolist() == [80, 0]
    assert table.first_keys(4).tolist() == [86, 0]
