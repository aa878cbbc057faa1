"""The most that a split mesh can give, as a ratio to the same model in one place.

Knows the work of a load in milliseconds of two machines, and how long a decode step is outside the cloud. Does not know
the order of work: a bound holds for every order, so that what is missing to it is the order's own loss.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """What a load takes when nothing waits. Times are microseconds of one engine, `num_steps` is at full batch.

    `centralized_us` is all work on the engine that holds all layers; `body_us` what the cloud has of it, of which
    `body_prefill_us` is prefill; `decode_return_us` is a step's round trip, turnaround and transfers.
    """

    centralized_us: float
    body_us: float
    body_prefill_us: float
    num_steps: float
    decode_return_us: float

    @property
    def prefill_per_step_us(self) -> float:
        """Prefill of the body that there is for each decode step."""
        return self.body_prefill_us / self.num_steps if self.num_steps else self.body_prefill_us

    @property
    def least_fused_us(self) -> float:
        """The shortest time of the cloud if rows of steps may ride in prefill.

        A pass is no shorter than the prefill in it, nor than the step in it; and a step is here or outside.
        """
        steps_us = self.body_us - self.body_prefill_us
        return max(self.body_prefill_us, steps_us + self.num_steps * self.decode_return_us)

    @property
    def least_bubbles_us(self) -> float:
        """Time that the cloud must idle: what prefill leaves uncovered of the decode returns."""
        return self.num_steps * max(0.0, self.decode_return_us - self.prefill_per_step_us)


def bound(work: Work) -> float:
    """Return the highest ratio of split to centralized throughput: W_c / (W_b + n max(0, R_D - W_p / n))."""
    return work.centralized_us / (work.body_us + work.least_bubbles_us)


def fused_bound(work: Work) -> float:
    """Return the same where rows may ride in prefill: W_c / max(W_p, W_b - W_p + n R_D)."""
    return work.centralized_us / work.least_fused_us


def decode_only_bound(
    centralized_step_us: float,
    body_step_us: Callable[[int], float],
    *,
    num_rows: int,
    decode_return_us: float,
    max_steps: int = 4,
) -> float:
    """Return the highest ratio where nothing but decode runs, over 1 to `max_steps` decode groups.

    With m groups a step holds `num_rows / m` rows, rounded up, and all of them have gone round once in
    max(m T_b(B/m), T_b(B/m) + R_D).
    """
    rounds = []
    for groups in range(1, min(max_steps, num_rows) + 1):
        step_us = body_step_us(-(-num_rows // groups))
        rounds.append(max(groups * step_us, step_us + decode_return_us))
    return centralized_step_us / min(rounds)
