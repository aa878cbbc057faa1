"""How long a decode step takes by its number of rows: what was seen, and a line through it where nothing was.

Knows sums. Does not know on which engine the steps ran.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edgeweave.client.mesh_state import UnitSum

MIN_UNITS = 8
"""A number of rows with fewer steps than this is read off the line."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Steps by their number of rows; at least one."""

    by_rows: Mapping[int, UnitSum]

    def step_us(self, num_rows: int) -> float:
        """Return the time of a step of `num_rows`.

        Raises:
            ValueError: no step was seen.
        """
        seen = self.by_rows.get(num_rows)
        if seen is not None and seen.num_units >= MIN_UNITS:
            return seen.total_us / seen.num_units
        fixed_us, row_us = self._line()
        return fixed_us + row_us * num_rows

    def _line(self) -> tuple[float, float]:
        """Return the fixed part and the part of a row, by least squares over all steps."""
        weight = sum(unit.num_units for unit in self.by_rows.values())
        if not weight:
            raise ValueError("no decode step was seen")
        mean_rows = sum(rows * unit.num_units for rows, unit in self.by_rows.items()) / weight
        mean_us = sum(unit.total_us for unit in self.by_rows.values()) / weight
        spread = sum(unit.num_units * (rows - mean_rows) ** 2 for rows, unit in self.by_rows.items())
        if not spread:
            return mean_us, 0.0
        together = sum(
            (rows - mean_rows) * (unit.total_us - unit.num_units * mean_us) for rows, unit in self.by_rows.items()
        )
        row_us = max(0.0, together / spread)
        return mean_us - row_us * mean_rows, row_us


def merged(*sums: Mapping[int, UnitSum]) -> dict[int, UnitSum]:
    """Return the steps of several runs together."""
    total: dict[int, UnitSum] = {}
    for each in sums:
        for rows, unit in each.items():
            before = total.get(rows, UnitSum(0, 0))
            total[rows] = UnitSum(before.num_units + unit.num_units, before.total_us + unit.total_us)
    return total
