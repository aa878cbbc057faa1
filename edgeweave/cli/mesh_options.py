"""What a mesh on one machine is asked to be.

Knows what can be chosen. Does not know how the services are started.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeweave.errors import InvalidSettingsError

SERVICE_MODULES = {
    "cloud": "edgeweave_cloud",
    "edge": "edgeweave_edge",
    "scheduler": "edgeweave_scheduler",
    "gateway": "edgeweave_gateway",
}


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """Four services and a link. What is None is left to the settings file, the variables and the defaults.

    `rtt_ms`, a round trip, takes the place of `distance_km`. `port` 0 takes a free one. `extra_flags` go to the
    service of their key as they are. `modules` says what runs as which service.
    """

    model: Path | None = None
    is_centralized: bool = False
    distance_km: float = 1000.0
    rtt_ms: float | None = None
    bandwidth_gbit: float = 10.0
    port: int | None = None
    plan: str | None = None
    split: str | None = None
    dtype: str | None = None
    max_steps: int | None = None
    max_prefills: int | None = None
    num_segments: int | None = None
    config: Path | None = None
    log_dir: Path | None = None
    is_pinned: bool = False
    start_deadline_s: float = 180.0
    stop_deadline_s: float = 20.0
    extra_flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=lambda: SERVICE_MODULES)

    def __post_init__(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            InvalidSettingsError: a split of one place.
        """
        if self.is_centralized and self.split not in (None, "none"):
            raise InvalidSettingsError(
                f"--split {self.split}: a centralized mesh is not cut; leave out --split or --centralized"
            )

    @property
    def services(self) -> tuple[str, ...]:
        """Names of the services, in the order in which others depend on them."""
        return tuple(name for name in self.modules if name != "cloud" or not self.is_centralized)
