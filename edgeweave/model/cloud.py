"""The cloud's share of a model: the body. All calls come from one thread."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from edgeweave.interleave.nouns import KvCapacity, Row, Segment
from edgeweave.interleave.split import Split
from edgeweave.model.capacity import KvMemory
from edgeweave.model.load import Placement, load_part
from edgeweave.model.part import Part
from edgeweave.model.sides import ModelFacts, Side


class CloudModel(Side):
    """The body."""

    def __init__(self, facts: ModelFacts, part: Part, *, device: torch.device) -> None:
        super().__init__(facts, part.cache, device=device)
        self._part = part

    @torch.inference_mode()
    def run_segment(self, rows: Sequence[Row], hidden: Tensor, segment: Segment) -> Tensor:
        """Run the layers of `segment`, part of the body, over `hidden` [tokens, hidden]; return [tokens, hidden]."""
        if not self.body.start <= segment.start < segment.stop <= self.body.stop:
            raise ValueError(f"{segment} is not part of the body {self.body}")
        return self._part.pass_through(rows, hidden, segment)


def load_cloud(
    folder: Path,
    *,
    split: Split,
    kv: KvCapacity | KvMemory,
    dtype: str = "float32",
    device: str = "cpu",
    pack_from: int | None = None,
    weights_dtype: str | None = None,
    runs_directly: bool = True,
) -> CloudModel:
    """Load the body of the model in `folder`.

    On the CPU, linear layers are laid out for its kernels where that pays, or from `pack_from` elements on. Their
    weights are kept as `weights_dtype`, with operands and results of `dtype`. Layers of the common shape run directly
    (`direct`) unless `runs_directly` forbids it.
    Raises `ModelNotFoundError`, `ModelNotSupportedError`, `SplitError`, or `InvalidSettingsError` for the device or
    where `kv` holds not one block.
    """
    placement = Placement(dtype, device, kv, pack_from, weights_dtype, runs_directly)
    facts, part, opened = load_part(folder, split=split, edge=False, placement=placement)
    return CloudModel(facts, part, device=opened)
