"""Everything that a contest found out, before anybody writes it down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from contest.engines import Engine
from contest.models import Model
from contest.rounds import Measured

RATIOS = (
    (Engine.OURS, Engine.GENERATE),
    (Engine.OURS, Engine.GENERATE_BATCH),
    (Engine.OURS, Engine.VLLM),
    (Engine.OURS_BF16, Engine.OURS),
    (Engine.OURS_MESH, Engine.OURS),
)
"""What is divided by what."""


@dataclass(frozen=True, slots=True)
class ModelResults:
    """What was measured on one model. `profiles` are the answers of `contest.profile` by engine."""

    model: Model
    settings: Mapping[Engine, Mapping[str, str]]
    measured: Sequence[Measured]
    profiles: Mapping[Engine, Mapping[str, Any]]

    @property
    def memory_bytes_per_s(self) -> float:
        """How fast the core read memory: the median over all rounds."""
        return median(value for each in self.measured for value in each.memory_bytes_per_s)
