"""Ranges of tensor rows and the token rows that lie in them, and which token rows are live.

A chunk's hidden state is `[tokens, hidden]`, its rows one after the other. Pieces of it are half-open ranges of
tensor rows.
"""

from collections.abc import Sequence

from edgeweave.interleave.nouns import Row


def rows_between(rows: tuple[Row, ...], *, start: int, stop: int) -> tuple[Row, ...]:
    """Return the parts of `rows` that lie in tensor rows `[start, stop)`."""
    parts = []
    offset = 0
    for row in rows:
        first = max(start - offset, 0)
        last = min(stop - offset, row.num_tokens)
        if first < last:
            parts.append(Row(row.sequence, row.start + first, row.start + last))
        offset += row.num_tokens
    return tuple(parts)


def live_rows(rows: Sequence[Row], live: Sequence[bool]) -> list[Row]:
    """Return the rows that are live, in order."""
    return [row for row, is_live in zip(rows, live, strict=True) if is_live]
