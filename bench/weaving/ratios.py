"""Ratios of paired runs: what was measured in the same round is compared, so that slow changes of a machine cancel.

Knows numbers by round. Does not know what they measure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of paired ratios, the least and the most of them, and how many pairs there were."""

    median: float
    least: float
    most: float
    num_pairs: int

    def __str__(self) -> str:
        """Say the median, and the spread where there is one."""
        if self.num_pairs == 1:
            return f"{self.median:.2f}"
        return f"{self.median:.2f} ({self.least:.2f}-{self.most:.2f})"


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Ratio | None:
    """Return ours / theirs over the rounds that both have; `None` without one."""
    ratios = [ours[number] / theirs[number] for number in sorted(ours.keys() & theirs.keys()) if theirs[number]]
    return Ratio(median(ratios), min(ratios), max(ratios), len(ratios)) if ratios else None
