"""The ways to serve a load that are compared: one place under each of its own plans, and the split under each plan.

Knows names, plans and the flags that only one place has. To compare one more, add a line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgeweave.interleave.nouns import Fuse, PlanKind
from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to serve. `edge_flags` are for the edge engine; variants with equal ones can share a mesh."""

    name: str
    plan: PlanRequest
    is_centralized: bool = False
    edge_flags: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """The flags as words of a command line."""
        return tuple(word for flag in sorted(self.edge_flags.items()) for word in flag)


_PIECE = {"--head-piece-tokens": "512"}
CENTRALIZED: Sequence[Variant] = (
    Variant("alternate", PlanRequest(PlanKind.ONE_P_ONE_D), is_centralized=True, edge_flags=_PIECE),
    Variant("prefill first", PlanRequest(PlanKind.ADAPTIVE, fuse=Fuse.NEVER), is_centralized=True, edge_flags=_PIECE),
    Variant("fused", PlanRequest(PlanKind.ADAPTIVE, fuse=Fuse.ALWAYS), is_centralized=True, edge_flags=_PIECE),
)
"""Plans of one place: decode alternates with chunks, or waits for them until its batch is full, or rides in them."""

SPLIT: Mapping[str, Variant] = {
    **{name: Variant(name, PlanRequest(kind)) for name, kind in PLAN_NAMES.items()},
    "apart": Variant("apart", PlanRequest(PlanKind.ADAPTIVE, fuse=Fuse.NEVER)),
}
"""Plans of the split: those that have names, and `adaptive` where no row rides in prefill."""
