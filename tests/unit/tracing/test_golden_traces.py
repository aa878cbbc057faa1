"""Traces of small loads as text: a change of what an operator sees is a diff that somebody reads.

Written anew by `UPDATE_GOLDEN=1 make test ARGS=tests/unit/tracing/test_golden_traces.py`; see `tests/golden/README.md`.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.traced import TracedMesh, alone, cancelled, fused, lost, woven

GOLDEN = Path(__file__).parents[2] / "golden"
CASES: dict[str, Callable[[], TracedMesh]] = {
    "alone": alone,
    "1p1d": lambda: woven("1p1d"),
    "2p1d": lambda: woven("2p1d"),
    "fused": fused,
    "cancelled": cancelled,
    "lost": lost,
}


@pytest.mark.parametrize("case", CASES)
def test_traces_are_as_they_were(case: str) -> None:
    """What an operator sees of a small load equals the text that is kept."""
    text = CASES[case]().text
    path = GOLDEN / f"trace_{case}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
