"""From settings to an emulated part.

Knows what takes the place of a model folder: the profile has the layers and their cut, a split in the settings is
stronger. Memory is not part of a profile: without `kv_bytes` in the settings there is ample KV, as in the simulator.
"""

from dataclasses import replace

from edgeweave.emulated.cloud import EmulatedCloud
from edgeweave.emulated.edge import EmulatedEdge
from edgeweave.emulated.facts import EmulatedFacts
from edgeweave.errors import InvalidSettingsError
from edgeweave.interleave.nouns import KvCapacity
from edgeweave.interleave.split import Split
from edgeweave.settings import CloudSettings, EdgeSettings
from edgeweave.sim.loads import profile_named

AMPLE_BLOCKS = 1 << 20
KV_LAYER_BYTES = 4096
"""Keys and values of one token in one layer: 8 heads of 128 elements, two bytes each."""
_NO_SPLIT = "none"

EngineSettings = EdgeSettings | CloudSettings


def emulated_edge(settings: EdgeSettings) -> EmulatedEdge:
    """Return the edge's share of the model that `settings.emulate` names; all of it with the split `none`.

    Raises:
        InvalidRequestError: there is no such profile.
        InvalidSettingsError, SplitError: profile, split or KV memory cannot be emulated.
    """
    facts = _facts(settings)
    return EmulatedEdge(facts, _kv(settings, num_layers=facts.profile.num_layers - facts.body.num_layers))


def emulated_cloud(settings: CloudSettings) -> EmulatedCloud:
    """Return the body of the model that `settings.emulate` names; raises what `emulated_edge` raises."""
    facts = _facts(settings)
    return EmulatedCloud(facts, _kv(settings, num_layers=facts.body.num_layers))


def _facts(settings: EngineSettings) -> EmulatedFacts:
    if settings.emulate is None:
        raise InvalidSettingsError(f"{settings.section}.emulate: names no profile; name one, such as npu")
    profile = profile_named(settings.emulate)
    split: Split | None = Split(profile.head_layers, profile.tail_layers)
    if "split" in settings.model_fields_set:
        split = None if settings.split == _NO_SPLIT else Split.parse(settings.split)
    if split is not None:
        profile = replace(profile, head_layers=split.head_layers, tail_layers=split.tail_layers)
    return EmulatedFacts(profile, split)


def _kv(settings: EngineSettings, *, num_layers: int) -> KvCapacity:
    if "kv_bytes" not in settings.model_fields_set:
        return KvCapacity(settings.block_tokens, AMPLE_BLOCKS)
    block_bytes = settings.block_tokens * num_layers * KV_LAYER_BYTES
    if settings.kv_bytes < block_bytes:
        raise InvalidSettingsError(
            f"{settings.kv_bytes} bytes hold no KV block of {block_bytes} bytes; give more KV memory"
        )
    return KvCapacity(settings.block_tokens, settings.kv_bytes // block_bytes)
