"""From a model folder to a loaded part: open, look, cut, fill."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import GenerationConfig, PreTrainedConfig

from edgeweave.interleave.nouns import DType, KvCapacity, Segment
from edgeweave.interleave.split import Split
from edgeweave.model.cache import KvCache
from edgeweave.model.capacity import KvMemory, kept_layers
from edgeweave.model.checkpoint import Checkpoint
from edgeweave.model.device import open_device
from edgeweave.model.direct import run_directly
from edgeweave.model.direct_spine import take_spine
from edgeweave.model.dtypes import dtype_of, torch_dtype
from edgeweave.model.fingerprint import fingerprint_of
from edgeweave.model.loading import fill
from edgeweave.model.packed import Packing, pack_linears
from edgeweave.model.part import Part, cut, give_kv
from edgeweave.model.probe import probe_cut, probe_layers
from edgeweave.model.probe_layer import LayerShape
from edgeweave.model.sides import ModelFacts
from edgeweave.model.spine import spine_of
from edgeweave.model.tree import build_tree


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a part is put and how: element type and device by their names, and KV.

    Linear layers are packed where that pays, or from `pack_from` elements on; weights of all of them are kept as
    `weights_dtype`, by its name, where that is not the element type. Layers of the common shape run directly unless
    `runs_directly` forbids it.
    """

    dtype: str
    device: str
    kv: KvCapacity | KvMemory
    pack_from: int | None = None
    weights_dtype: str | None = None
    runs_directly: bool = True

    @property
    def packing(self) -> Packing:
        """How linear layers are laid out; `InvalidSettingsError` where the type has no such name."""
        kept = None if self.weights_dtype is None else torch_dtype(dtype_of(self.weights_dtype))
        return Packing(self.pack_from, kept, on_one_core=torch.get_num_threads() == 1)


def load_part(
    folder: Path, *, split: Split | None, edge: bool, placement: Placement
) -> tuple[ModelFacts, Part, torch.device]:
    """Load the share of the edge, or of the cloud, of the model in `folder`; return the device that it is on."""
    device = open_device(placement.device)
    packing = placement.packing
    element = dtype_of(placement.dtype)
    dtype = torch_dtype(element)
    checkpoint = Checkpoint.open(folder)
    tree = build_tree(folder, dtype=dtype)
    num_layers = len(tree.layers)
    body = split.body(num_layers) if split else Segment(num_layers, num_layers)
    kept = kept_layers(body, num_layers, edge=edge)
    shapes = probe_layers(tree)
    capacity = _capacity(placement.kv, shapes, kept=kept, dtype=dtype)
    stack = cut(tree, kept=kept, with_outside=edge)
    probe_cut(tree)
    fill(tree.model, checkpoint, dtype=dtype, device=device)
    checkpoint.close()
    cache = KvCache(capacity, device=device, dtype=dtype, on_one_core=torch.get_num_threads() == 1)
    give_kv(shapes, cache, kept=kept)
    part = Part(tree, stack, cache, device=device)
    all_run_directly = placement.runs_directly and run_directly(part, stack, shapes, packing) == stack.kept
    pack_linears(tree.model, packing)
    if all_run_directly:
        take_spine(part, spine_of(tree, stack), kept, with_outside=edge)
    return _facts(checkpoint, tree.config, split=split, body=body, dtype=element), part, device


def _capacity(
    kv: KvCapacity | KvMemory, shapes: Sequence[LayerShape], *, kept: Sequence[Segment], dtype: torch.dtype
) -> KvCapacity:
    if isinstance(kv, KvCapacity):
        return kv
    return kv.capacity([shape for segment in kept for shape in shapes[segment.start : segment.stop]], dtype=dtype)


def _facts(
    checkpoint: Checkpoint, config: PreTrainedConfig, *, split: Split | None, body: Segment, dtype: DType
) -> ModelFacts:
    return ModelFacts(
        fingerprint=fingerprint_of(checkpoint, split=split, dtype=dtype),
        num_layers=config.num_hidden_layers,
        body=body,
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
        max_positions=_max_positions(config),
        eos_token_ids=_eos_token_ids(checkpoint.folder, config),
        dtype=dtype,
    )


def _max_positions(config: PreTrainedConfig) -> int | None:
    """Return the longest sequence whose positions do not depend on what else is computed with it.

    Beyond the window that a model was first trained on, some rotary scalings ("dynamic", "longrope") follow the longest
    sequence of a forward; a batch would change the answers of its members.
    """
    parameters = getattr(config, "rope_parameters", None) or {}
    ropes = [parameters, *(value for value in parameters.values() if isinstance(value, dict))]
    varying = [rope for rope in ropes if rope.get("rope_type") in {"dynamic", "longrope"}]
    limits = [getattr(config, "max_position_embeddings", None)]
    limits += [rope.get("original_max_position_embeddings") for rope in varying]
    return min((limit for limit in limits if limit), default=None)


def _eos_token_ids(folder: Path, config: PreTrainedConfig) -> frozenset[int]:
    """Return the ids that end an output, from generation_config.json where there is one."""
    ids = config.eos_token_id
    if (folder / "generation_config.json").exists():
        ids = GenerationConfig.from_pretrained(folder, local_files_only=True).eos_token_id or ids
    return frozenset([ids] if isinstance(ids, int) else ids or [])
