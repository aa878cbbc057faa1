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

    `emulate`, a hardware profile, takes the place of `model`. Then there is no text and so no gateway; the SDK asks the
    scheduler, as it does where `with_gateway` is false. `rtt_ms`, a round trip, takes the place of `distance_km`.
    `port` 0 takes a free one. `extra_flags` go to the service of their key as they are. `modules` says what runs as
    which service.
    """

    model: Path | None = None
    emulate: str | None = None
    with_gateway: bool = True
    is_centralized: bool = False
    distance_km: float = 1000.0
    rtt_ms: float | None = None
    bandwidth_gbit: float = 10.0
    port: int | None = None
    plan: str | None = None
    split: str | None = None
    dtype: str | None = None
    weights_dtype: str | None = None
    max_steps: int | None = None
    max_prefills: int | None = None
    num_segments: int | None = None
    fuse: str | None = None
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
            InvalidSettingsError: a split of one place, or a model beside a profile.
        """
        if self.model is not None and self.emulate is not None:
            raise InvalidSettingsError(
                f"--emulate {self.emulate}: takes the place of a model; leave out --model or --emulate"
            )
        if self.is_centralized and self.split not in (None, "none"):
            raise InvalidSettingsError(
                f"--split {self.split}: a centralized mesh is not cut; leave out --split or --centralized"
            )

    @property
    def services(self) -> tuple[str, ...]:
        """Names of the services, in the order in which others depend on them."""
        without = {"cloud"} if self.is_centralized else set()
        if not self.has_gateway:
            without.add("gateway")
        return tuple(name for name in self.modules if name not in without)

    @property
    def has_gateway(self) -> bool:
        """Whether HTTP is served: without a model there is no tokenizer for it."""
        return self.with_gateway and self.emulate is None
