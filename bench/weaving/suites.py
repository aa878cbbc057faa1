"""What is measured together: parts of the bench, and the two suites that `make` runs.

Knows which loads, distances and plans belong to which engines. Does not measure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from weaving.places import Place
from weaving.variants import SPLIT

ENGINES = ("emulated", "real", "deep", "embedded")
LOADS = ("A", "B", "prefill", "decode", "C")
PLANS = tuple(SPLIT)
DISTANCES_KM = (0.0, 500.0, 1000.0, 3000.0, 10_000.0)
TLS_DISTANCE_KM = 1000.0


@dataclass(frozen=True, slots=True)
class Part:
    """Loads on one kind of engines, under some plans at some places."""

    engines: str
    loads: tuple[str, ...] = LOADS
    distances_km: tuple[float, ...] = DISTANCES_KM
    plans: tuple[str, ...] = PLANS
    with_tls: bool = False

    @property
    def places(self) -> tuple[Place, ...]:
        """Where the split is measured."""
        behind_tls = (Place(TLS_DISTANCE_KM, has_tls=True),) if self.with_tls else ()
        return (*(Place(distance_km) for distance_km in self.distances_km), *behind_tls)


_REAL_AT_1000_KM = (
    Part("real", ("A", "prefill", "decode"), (1000.0,), ("adaptive",)),
    Part("real", ("B",), (1000.0,), ("2p1d", "adaptive")),
)
_WHOLE_TABLE = (
    Part("emulated"),
    Part("real", ("A", "prefill", "decode", "C")),
    Part("real", ("B",), with_tls=True),
    Part("deep", ("A", "B", "prefill", "decode"), (1000.0, 3000.0)),
    Part("embedded", ("B",), (0.0, 1000.0, 3000.0), ("2p1d", "adaptive")),
)
SUITES: Mapping[str, tuple[Part, ...]] = {"short": (Part("emulated"), *_REAL_AT_1000_KM), "full": _WHOLE_TABLE}
"""`short`: emulated engines in full, computing ones at 1,000 km. `full`: the whole table, in some hours."""
