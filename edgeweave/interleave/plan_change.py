"""A change of plan, as it is told to whoever watches: what is predicted of it."""

from dataclasses import dataclass

from edgeweave.interleave.nouns import Plan


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A new plan, and the rows of decode a second that it is predicted to give beside those of the one before.

    Both follow from the counts in flight; what fuller steps give is not in them. 0: not enough was measured.
    """

    plan: Plan
    rows_per_s: float
    rows_per_s_before: float

    @property
    def gain(self) -> float:
        """Predicted gain as a share of what the plan before gives; 0 where neither is known."""
        return self.rows_per_s / self.rows_per_s_before - 1.0 if self.rows_per_s_before else 0.0
