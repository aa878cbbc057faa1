"""The engines that are measured: real compute of a seeded model, the embedded real model, or times of a profile.

Knows how a mesh of each kind is asked for, and what its tokens have to be. Does not measure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.emulated.facts import VOCAB_SIZE
from edgeweave.emulated.reference import reference_tokens
from edgeweave.interleave.nouns import Stage
from edgeweave.settings import TlsSettings
from edgeweave.sim.profile import Profile
from weaving.answers import wall_us
from weaving.certificates import tls_words
from weaving.checks import Reference
from weaving.loads import BenchLoad, Prompt
from weaving.places import Place
from weaving.reference_cache import ReferenceCache
from weaving.run import Run

MAX_PREFILL_TOKENS = 512
MAX_SEQ_LEN = 640
"""A chunk holds what comes first: one prompt, or two short ones."""


class Engines(Protocol):
    """One kind of engines."""

    @property
    def name(self) -> str:
        """How they are called on the command line and in tables."""
        ...

    @property
    def vocab_size(self) -> int:
        """How many token ids there are."""
        ...

    @property
    def split(self) -> str:
        """First and last layers that the edge runs, as `head:tail`."""
        ...

    @property
    def is_pinned(self) -> bool:
        """Whether the cloud has a core of its own, and all else the other. Such runs have noise, and want quiet."""
        ...

    def options(self) -> MeshOptions:
        """Return a mesh of these engines, without what depends on load, distance and variant."""
        ...

    async def references(self, prompts: Sequence[Prompt], num_tokens: Sequence[int]) -> list[Reference]:
        """Return what the outputs have to be."""
        ...

    def slowdown(self, run: Run) -> float:
        """Return how many times longer units took than undisturbed ones; 1 on a quiet machine."""
        ...


@dataclass(frozen=True, slots=True)
class ModelEngines:
    """Engines that compute a model in float32, one thread each."""

    name: str
    model: Path
    vocab_size: int
    cache: ReferenceCache
    split: str
    is_pinned: bool = True

    def options(self) -> MeshOptions:
        """Return a mesh of this model."""
        return MeshOptions(model=self.model, with_gateway=False, dtype="float32", is_pinned=self.is_pinned)

    async def references(self, prompts: Sequence[Prompt], num_tokens: Sequence[int]) -> list[Reference]:
        """Return what `transformers.generate` of the whole model says."""
        return await self.cache.references(prompts, num_tokens)

    def slowdown(self, run: Run) -> float:
        """Compare the time in which units ran with the time that the engine had a core."""
        busy_s = run.use.body.busy_us / 1e6
        return max(1.0, busy_s / (run.body_cpu * wall_us(run.answers) / 1e6))


@dataclass(frozen=True, slots=True)
class EmulatedEngines:
    """Engines whose units take the times of a hardware profile; what they send is real."""

    profile: Profile
    name: str = "emulated"
    vocab_size: int = VOCAB_SIZE
    split: str = "1:1"
    is_pinned: bool = False

    def options(self) -> MeshOptions:
        """Return a mesh of this hardware."""
        return MeshOptions(emulate=self.profile.name)

    async def references(self, prompts: Sequence[Prompt], num_tokens: Sequence[int]) -> list[Reference]:
        """Return what the definition of the emulated model says."""
        layers = self.profile.num_layers
        return [
            Reference(tuple(reference_tokens(prompt, length, num_layers=layers)))
            for prompt, length in zip(prompts, num_tokens, strict=True)
        ]

    def slowdown(self, run: Run) -> float:
        """Compare the decode steps with the profile."""
        steps = run.use.body.rows(Stage.STEP if run.key.place.is_split else Stage.TURNAROUND)
        took_us = sum(unit.total_us for unit in steps.values())
        due_us = sum(unit.num_units * self._step_us(rows, run.key.place) for rows, unit in steps.items())
        return max(1.0, took_us / due_us) if due_us else 1.0

    def _step_us(self, num_rows: int, place: Place) -> float:
        """Return the time of a step: of the body, or in one place of all layers and then of a tail that only draws."""
        profile = self.profile
        if place.is_split:
            return profile.body_step_us(num_rows)
        layers_us = profile.num_layers * profile.cloud.step_us(num_rows)
        return 2 * profile.unit_us + layers_us + num_rows * profile.logits_row_us


def options_for(
    engines: Engines, load: BenchLoad, place: Place, *, edge_words: Sequence[str] = (), tls: TlsSettings | None = None
) -> MeshOptions:
    """Return the mesh that serves `load` at `place`."""
    limits = {
        "--max-batch-size": load.max_batch_size,
        "--max-prefill-tokens": MAX_PREFILL_TOKENS,
        "--max-seq-len": MAX_SEQ_LEN,
        "--chunk-tokens": MAX_PREFILL_TOKENS,
    }
    common = tls_words(tls) if tls is not None else []
    flags = {
        "scheduler": [*(str(word) for pair in limits.items() for word in pair), *common],
        "edge": [*edge_words, *common],
        "cloud": common,
    }
    options = replace(engines.options(), extra_flags=flags)
    if place.distance_km is None:
        return replace(options, is_centralized=True)
    return replace(options, split=engines.split, distance_km=place.distance_km)
