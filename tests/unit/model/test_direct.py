"""Layers that run directly against those of transformers, and which ones may."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from edgeweave.interleave.nouns import KvCapacity, Row, Segment
from edgeweave.interleave.split import Split
from edgeweave.model import load_edge
from edgeweave.model.cache import KvCache
from edgeweave.model.checkpoint import Checkpoint
from edgeweave.model.common_layer import common_layer
from edgeweave.model.direct import run_directly
from edgeweave.model.direct_spine import take_spine
from edgeweave.model.layers import LayerStack
from edgeweave.model.loading import fill
from edgeweave.model.packed import PackedLinear, Packing
from edgeweave.model.part import Part, cut, give_kv
from edgeweave.model.probe import probe_layers
from edgeweave.model.spine import Spine, spine_of
from edgeweave.model.tree import build_tree
from models.architectures import ARCHITECTURES, NUM_LAYERS
from models.tiny import tiny_model

KV = KvCapacity(block_tokens=4, num_blocks=32)
CPU = torch.device("cpu")
ALL = tuple(range(NUM_LAYERS))
DIRECT = {"llama", "qwen2", "qwen3", "mistral"}
PLAIN = 1 << 40
"""A border that no layer of a tiny model reaches: nothing is packed."""


class Loaded:
    """The whole of a tiny model in one part, before anything takes the place of its layers."""

    def __init__(self, folder: Path) -> None:
        self.tree = tree = build_tree(folder, dtype=torch.float32)
        self.shapes = probe_layers(tree)
        self.kept = kept = [Segment(0, NUM_LAYERS), Segment(NUM_LAYERS, NUM_LAYERS)]
        self.stack: LayerStack = cut(tree, kept=kept, with_outside=True)
        fill(tree.model, Checkpoint.open(folder), dtype=torch.float32, device=CPU)
        cache = KvCache(KV, device=CPU, dtype=torch.float32)
        give_kv(self.shapes, cache, kept=kept)
        self.part = Part(tree, self.stack, cache, device=CPU)

    def run_directly(self, packing: Packing | None = None) -> tuple[int, ...]:
        return run_directly(self.part, self.stack, self.shapes, packing or Packing(PLAIN))

    @property
    def spine(self) -> Spine:
        spine = spine_of(self.tree, self.stack)
        assert spine is not None
        return spine

    def takes(self, spine: Spine) -> bool:
        return take_spine(self.part, spine, self.kept, with_outside=True)

    def output(self, hidden: Tensor, rows: list[Row]) -> Tensor:
        with torch.inference_mode():
            return self.part.pass_through(rows, hidden.clone(), Segment(0, NUM_LAYERS))

    def logits(self, ids: list[int], rows: list[Row], final: list[int]) -> Tensor:
        with torch.inference_mode():
            hidden = self.part.embed(rows, ids, self.kept[0])
            return self.part.finish(rows, hidden, self.kept[1], final=final)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layers_of_the_common_shape_run_directly(architecture: str) -> None:
    """All of an architecture that has the shape, none of one that multiplies, caps, routes or normalizes otherwise."""
    assert Loaded(tiny_model(architecture)).run_directly() == (ALL if architecture in DIRECT else ())


@pytest.mark.parametrize("architecture", sorted(DIRECT))
def test_a_layer_that_runs_directly_computes_the_same(architecture: str) -> None:
    """Chunks, a step over both sequences, and a mix of them: the hidden states are those of transformers' layers."""
    own, direct = Loaded(tiny_model(architecture)), Loaded(tiny_model(architecture))
    direct.run_directly(Packing(1))
    generator = torch.Generator().manual_seed(1)
    for rows in (
        [Row(1, 0, 9), Row(2, 0, 9)],
        [Row(1, 9, 10), Row(2, 9, 10)],
        [Row(2, 10, 11), Row(3, 0, 7), Row(1, 10, 11)],
        [Row(3, 7, 12)],
    ):
        hidden = torch.randn(sum(row.num_tokens for row in rows), own.part.hidden_size, generator=generator)
        torch.testing.assert_close(direct.output(hidden, rows), own.output(hidden, rows), rtol=1e-4, atol=1e-4)


def test_a_layer_that_runs_directly_is_packed_and_leaves_no_weights_behind() -> None:
    """Products of one operand are one; the modules that they were made of are gone."""
    loaded = Loaded(tiny_model("llama"))
    loaded.run_directly(Packing(1))
    linears = [child for child in loaded.stack.layer(0).children() if isinstance(child, PackedLinear)]
    assert [(linear.in_features, linear.out_features) for linear in linears] == [(32, 64), (32, 32), (32, 96), (48, 32)]
    assert not any(isinstance(module, nn.Linear) for module in loaded.stack.modules())


class Capped(nn.SiLU):
    """The activation, but never more than a hundred."""

    def forward(self, operand: Tensor) -> Tensor:
        return super().forward(operand).clamp(max=100.0)


class Doubled(nn.SiLU):
    """Twice the activation."""

    def forward(self, operand: Tensor) -> Tensor:
        return super().forward(operand) * 2


def test_a_layer_with_a_threshold_keeps_its_own_forward() -> None:
    """Equal numbers at one place prove nothing where an operation does one thing or another."""
    loaded = Loaded(tiny_model("llama"))
    loaded.stack.layer(2).get_submodule("mlp").act_fn = Capped()
    assert loaded.run_directly() == (0, 1, 3, 4, 5)


class Otherwise(nn.Module):
    """An MLP with the modules of the common one that computes something else with them."""

    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (
            mlp.get_submodule(name) for name in ("gate_proj", "up_proj", "down_proj")
        )
        self.act_fn = nn.SiLU()

    def forward(self, operand: Tensor) -> Tensor:
        output: Tensor = self.down_proj(self.act_fn(self.up_proj(operand)) * self.gate_proj(operand))
        return output


def test_a_layer_that_does_something_else_with_the_same_modules_keeps_its_own_forward() -> None:
    """The numbers decide, not the names; the layer is back in its place."""
    loaded = Loaded(tiny_model("llama"))
    layer = loaded.stack.layer(4)
    layer.mlp = Otherwise(layer.get_submodule("mlp"))
    assert loaded.run_directly() == (0, 1, 2, 3, 5)
    assert loaded.stack.layer(4) is layer


def test_an_activation_is_taken_as_it_is() -> None:
    """Whatever smooth function it is."""
    own, direct = Loaded(tiny_model("llama")), Loaded(tiny_model("llama"))
    for loaded in (own, direct):
        loaded.stack.layer(0).get_submodule("mlp").act_fn = Doubled()
    assert direct.run_directly() == ALL
    hidden = torch.randn(3, own.part.hidden_size)
    rows = [Row(1, 0, 3)]
    torch.testing.assert_close(direct.output(hidden, rows), own.output(hidden, rows), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", sorted(DIRECT))
def test_where_all_layers_run_directly_the_models_forward_is_not_needed(architecture: str) -> None:
    """Logits of prompts and steps are those of the model's own forward, for each row that is asked for."""
    own, along = Loaded(tiny_model(architecture)), Loaded(tiny_model(architecture))
    along.run_directly()
    assert along.takes(along.spine)
    for rows, final in (
        ([Row(1, 0, 5), Row(2, 0, 3)], [1]),
        ([Row(1, 5, 6), Row(2, 3, 4)], [0, 1]),
        ([Row(2, 4, 9)], []),
    ):
        ids = [7 * number % 100 for number in range(sum(row.num_tokens for row in rows))]
        logits = [loaded.logits(ids, rows, final) for loaded in (along, own)]
        torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-4)


def test_a_model_that_does_something_else_around_its_layers_keeps_its_forward() -> None:
    """The numbers decide: without the final norm they are others."""
    loaded = Loaded(tiny_model("llama"))
    loaded.run_directly()
    assert not loaded.takes(replace(loaded.spine, norm=nn.Identity()))
    assert loaded.part.spine is None
    assert loaded.takes(loaded.spine)


def test_an_operation_that_chooses_keeps_the_models_forward() -> None:
    """Logits that are capped far away are equal here, and not everywhere."""
    loaded = Loaded(tiny_model("llama"))
    loaded.run_directly()
    output = loaded.tree.model.get_submodule("lm_head")
    output.register_forward_hook(lambda _module, _operands, logits: logits.clamp(max=1e6))
    assert not loaded.takes(replace(loaded.spine, output=_unhooked(output)))


def _unhooked(linear: nn.Module) -> nn.Module:
    """Return `linear` without its hooks."""
    assert isinstance(linear, nn.Linear)
    plain = nn.Linear(linear.in_features, linear.out_features, bias=False, device="meta")
    plain.weight = linear.weight
    return plain


def test_other_shapes_are_told_from_the_common_one() -> None:
    """A module more, a weight beside the modules, or a module of another kind."""
    layers = list(build_tree(tiny_model("llama"), dtype=torch.float32).layers)
    layers[0].extra = nn.Identity()
    layers[1].get_submodule("self_attn").register_parameter("sinks", nn.Parameter(torch.zeros(4)))
    layers[2].get_submodule("mlp").up_proj = nn.Identity()
    layers[3].input_layernorm = nn.Identity()
    assert [common_layer(layer) is None for layer in layers] == [True, True, True, True, False, False]


def test_trying_a_layer_leaves_no_blocks() -> None:
    """The sequence that it is tried with is gone before the first request."""
    edge = load_edge(tiny_model("llama"), split=Split(), kv=KvCapacity(block_tokens=1, num_blocks=1))
    assert edge.kv_blocks_used == 0
