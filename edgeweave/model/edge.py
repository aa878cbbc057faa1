"""The edge's share of a model: embedding, head, tail and output head.

Without a split it holds all layers: the head is the whole model and the tail no layer, so that an engine treats both
cases alike. All calls come from one thread.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from edgeweave.interleave.nouns import KvCapacity, Row, Sampling, Segment
from edgeweave.interleave.split import Split
from edgeweave.model.capacity import KvMemory
from edgeweave.model.load import Placement, load_part
from edgeweave.model.part import Part
from edgeweave.model.sampler import Sampler
from edgeweave.model.sides import ModelFacts, Side


class EdgeModel(Side):
    """Embedding, head, tail, output head and sampler."""

    def __init__(self, facts: ModelFacts, part: Part, *, device: torch.device) -> None:
        super().__init__(facts, part.cache, device=device)
        self._part = part
        self._head = Segment(0, facts.body.start)
        self._tail = Segment(facts.body.stop, facts.num_layers)
        self._sampler = Sampler()

    @torch.inference_mode()
    def run_head(self, rows: Sequence[Row], token_ids: Sequence[int]) -> Tensor:
        """Run embedding and head over the tokens of `rows`, whose ids come in row order; return [tokens, hidden]."""
        return self._part.embed(rows, token_ids, self._head)

    @torch.inference_mode()
    def run_tail(self, rows: Sequence[Row], hidden: Tensor, *, final: Sequence[int]) -> Tensor:
        """Run the tail over `hidden` [tokens, hidden] of all `rows`.

        Returns float32 logits [len(final), vocab] of the last token of `rows[i]` for each i in `final`.
        """
        return self._part.finish(rows, hidden, self._tail, final=final).float()

    def sample(self, logits: Tensor, samplings: Sequence[Sampling], indices: Sequence[int]) -> list[int]:
        """Return a token id for each row of `logits` [rows, vocab], as `Sampler.sample` does."""
        return self._sampler.sample(logits, samplings, indices)


def load_edge(
    folder: Path,
    *,
    split: Split | None,
    kv: KvCapacity | KvMemory,
    dtype: str = "float32",
    device: str = "cpu",
    pack_from: int | None = None,
    weights_dtype: str | None = None,
    runs_directly: bool = True,
) -> EdgeModel:
    """Load the edge's share of the model in `folder`; all of it where `split` is `None`.

    On the CPU, linear layers are laid out for its kernels where that pays, or from `pack_from` elements on. Their
    weights are kept as `weights_dtype`, with operands and results of `dtype`. Layers of the common shape run directly
    (`direct`) unless `runs_directly` forbids it.
    Raises `ModelNotFoundError`, `ModelNotSupportedError`, `SplitError`, or `InvalidSettingsError` for the device or
    where `kv` holds not one block.
    """
    placement = Placement(dtype, device, kv, pack_from, weights_dtype, runs_directly)
    facts, part, opened = load_part(folder, split=split, edge=True, placement=placement)
    return EdgeModel(facts, part, device=opened)
