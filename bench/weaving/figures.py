"""All figures of a table as plain values, for JSON.

Knows names of fields. Leaves nothing out that a table or a plot shows.
"""

from dataclasses import asdict
from typing import Any

from weaving.cells import Cell, Table


def table_figures(table: Table) -> dict[str, Any]:
    """Return a table as values that JSON holds."""
    return {
        "engines": table.engines,
        "load": table.load.name,
        "baseline": table.baseline,
        "one_place": [_cell_figures(cell) for cell in table.one_place],
        "split": [_cell_figures(cell) for cell in table.split],
    }


def _cell_figures(cell: Cell) -> dict[str, Any]:
    figures = asdict(cell)
    figures["bubbles"] = {cause.name.lower(): share for cause, share in cell.bubbles.items()}
    return figures
