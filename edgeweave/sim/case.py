"""One question to the simulator: this model on this hardware, this load, over this link.

Knows how a case becomes the shape of a mesh. Does not know which plan is wanted.
"""

from dataclasses import dataclass, replace

from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import PlanKind
from edgeweave.interleave.plans import PlanRequest
from edgeweave.link.profile import LinkProfile
from edgeweave.sim.ceiling import Ceiling, ceiling, decode_return_us
from edgeweave.sim.demand import Demand
from edgeweave.sim.load import Load
from edgeweave.sim.mesh import Shape
from edgeweave.sim.profile import Profile
from edgeweave.sim.run import Outcome, simulate

ONE_PLACE_PIECES = (256, 1024)
"""Tokens of a prefill piece that one place is tried with, besides whole chunks: it is compared at its best."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model on hardware, a load, the limits of the scheduler, and a link of `distance_km` with `gbit_per_s`."""

    profile: Profile
    load: Load
    limits: Limits
    distance_km: float
    gbit_per_s: float

    def at(self, distance_km: float) -> "Case":
        """Return the same case at another distance."""
        return replace(self, distance_km=distance_km)

    @property
    def demand(self) -> Demand:
        """What the load asks of the hardware."""
        return Demand.of(self.load, profile=self.profile, limits=self.limits)

    @property
    def ceiling(self) -> Ceiling:
        """The most that any order of work gives at this distance."""
        shape = self.shape(PlanRequest(PlanKind.SERIAL))
        return ceiling(self.demand, one_way_us=shape.one_way_us or 0, bytes_per_us=shape.bytes_per_us)

    @property
    def step_return_us(self) -> float:
        """How long a full step is outside the cloud: link, turnaround, link."""
        shape, num_rows = self.shape(PlanRequest(PlanKind.SERIAL)), self.limits.max_batch_size
        one_way_us = shape.one_way_us or 0
        return decode_return_us(self.demand, num_rows, one_way_us=one_way_us, bytes_per_us=shape.bytes_per_us)

    def shape(self, plan: PlanRequest) -> Shape:
        """Return the mesh that serves it under `plan`."""
        link = LinkProfile.of_distance(self.distance_km, gbit_per_s=self.gbit_per_s)
        return Shape(self.profile, plan, self.limits, round(link.delay_ns / 1000), link.bytes_per_s / 1e6)

    def simulate(self, plan: PlanRequest) -> Outcome:
        """Serve the load under `plan`."""
        return simulate(self.shape(plan), self.load)

    def simulate_one_place(self) -> Outcome:
        """Serve the load with all layers on one engine: the best of some sizes of pieces, and of rows that ride."""
        whole = self.limits.max_prefill_tokens
        tries = [(PlanKind.ONE_P_ONE_D, tokens) for tokens in sorted({*ONE_PLACE_PIECES, whole})]
        outcomes = [self._in_one_place(kind, tokens) for kind, tokens in (*tries, (PlanKind.ADAPTIVE, whole))]
        return max(outcomes, key=lambda outcome: outcome.tokens_per_s)

    def _in_one_place(self, kind: PlanKind, piece_tokens: int) -> Outcome:
        shape = replace(self.shape(PlanRequest(kind)), one_way_us=None, piece_tokens=piece_tokens)
        return simulate(shape, self.load)
