"""The most that a load can reach over a link, and what holds it there.

Knows the work of cloud, edge and link and the time that a step is away. Does not simulate: no order of work is better.
"""

from dataclasses import dataclass, replace
from enum import Enum

from edgeweave.sim.bounds import Work, bound
from edgeweave.sim.demand import Demand

MAX_GROUPS = 4
"""Decode groups that are weighed: each further one makes a step's fixed time be paid once more."""

NEARLY = 0.99
"""A further group must promise more than the rest of this."""


class Limit(Enum):
    """What is taken without a pause where the ceiling is reached."""

    CLOUD = "cloud"
    DECODE_RETURN = "decode return"
    EDGE = "edge"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The highest ratio of split to centralized throughput, with so many decode groups.

    `decode_return_us` is how long a step of the whole batch stays outside the cloud.
    """

    ratio: float
    num_groups: int
    limit: Limit
    decode_return_us: float


def ceiling(demand: Demand, *, one_way_us: float, bytes_per_us: float) -> Ceiling:
    """Return the ceiling of `demand` over a link, with the fewest groups that nearly reach it."""
    ceilings = [
        _with_groups(demand, num_groups, one_way_us=one_way_us, bytes_per_us=bytes_per_us)
        for num_groups in range(1, min(MAX_GROUPS, max(1, demand.num_open)) + 1)
    ]
    best = max(found.ratio for found in ceilings)
    return replace(next(found for found in ceilings if found.ratio >= NEARLY * best), ratio=best)


def decode_return_us(demand: Demand, num_rows: int, *, one_way_us: float, bytes_per_us: float) -> float:
    """Return the time from the end of a step in the cloud to the arrival of the next: link, turnaround, link."""
    transfer_us = num_rows * demand.profile.token_bytes / bytes_per_us
    return 2 * (one_way_us + transfer_us) + demand.turnaround_us(num_rows)


def _with_groups(demand: Demand, num_groups: int, *, one_way_us: float, bytes_per_us: float) -> Ceiling:
    num_rows = demand.group_rows(num_groups)
    return_us = decode_return_us(demand, num_rows, one_way_us=one_way_us, bytes_per_us=bytes_per_us)
    others_us = (num_groups - 1) * demand.profile.body_step_us(num_rows)  # while one group is away, the others run
    work = Work(
        centralized_us=demand.centralized_us,
        body_us=demand.body_us(num_groups=num_groups),
        body_prefill_us=demand.body_prefill_us,
        num_steps=demand.num_rounds(num_groups),  # the returns of all groups pass side by side
        decode_return_us=max(0.0, return_us - others_us),
    )
    ratios = {
        Limit.DECODE_RETURN if work.least_bubbles_us > 0 else Limit.CLOUD: bound(work),
        Limit.EDGE: demand.centralized_us / demand.edge_us(num_groups=num_groups),
        Limit.LINK: demand.centralized_us * bytes_per_us / demand.link_bytes,
    }
    limit = min(ratios, key=lambda candidate: ratios[candidate])
    whole_us = decode_return_us(demand, demand.group_rows(1), one_way_us=one_way_us, bytes_per_us=bytes_per_us)
    return Ceiling(ratios[limit], num_groups, limit, whole_us)
