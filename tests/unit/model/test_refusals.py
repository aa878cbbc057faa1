"""Models that cannot be cut are refused with the reason, found by looking at their layers."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from edgeweave.errors import ModelNotFoundError, ModelNotSupportedError
from edgeweave.model.probe import probe_layers
from edgeweave.model.probe_layer import probe_layer
from edgeweave.model.tree import build_tree
from models.tiny import tiny_model

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}
HYBRID = {"layer_types": ["full_attention", "linear_attention"] * 2}

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "encoder-decoder": ("t5", {}, "encoder-decoder"),
    "not causal": ("vit", {}, "not a causal language model"),
    "quantized": ("llama", {"quantization_config": {"quant_method": "fp8"}}, "quantized"),
    "old attention": ("xglm", {"num_layers": 4}, "layer 0 .* attends 0 times"),
    "layers that return more": ("bloom", {"n_layer": 4}, "its layers return more than the hidden state"),
    "two attentions": ("diffllama", {}, "layer 0 .* attends 2 times"),
    "mask of both directions": ("bert", {"is_decoder": False}, "layer 0 .* neither causal nor a sliding window"),
    "mask by chunks": ("llama4_text", {"head_dim": 8, "num_local_experts": 2}, "neither causal nor a sliding window"),
    "state": ("falcon_mamba", {}, "layer 0 .* keeps a state besides keys and values"),
    "linear attention": ("qwen3_next", HYBRID, "layer 1 .* keeps a state besides keys and values"),
    "several streams": ("gemma3n_text", {"num_kv_shared_layers": 0}, "layer 0 .* more than one residual stream"),
    "hyper-connections": ("deepseek_v4", {}, "layer 0 .* more than one residual stream"),
    "embeddings for each layer": ("gemma4_text", {}, 'layer 0 .* takes "per_layer_input" .* token ids or embeddings'),
}


def _folder(place: Path, model_type: str, changes: dict[str, Any]) -> Path:
    default = transformers.AutoConfig.for_model(model_type)
    known = {key: value for key, value in SMALL.items() if hasattr(default, key)}
    transformers.AutoConfig.for_model(model_type, **known | changes).save_pretrained(place)
    return place


@pytest.mark.parametrize(("model_type", "changes", "reason"), CASES.values(), ids=CASES.keys())
def test_the_reason_is_said(tmp_path: Path, model_type: str, changes: dict[str, Any], reason: str) -> None:
    """The error names the model, the layer and what stands against the cut, in one line."""
    folder = _folder(tmp_path, model_type, changes)
    with pytest.raises(ModelNotSupportedError, match=reason) as caught:
        probe_layers(build_tree(folder, dtype=torch.float32))
    assert "\n" not in str(caught.value)


class Sharing(nn.Module):
    """A layer that takes its keys and values from a mapping that all layers are given."""

    def forward(self, hidden_states: Tensor, shared: dict[str, Tensor]) -> Tensor:
        return hidden_states + shared["keys"]


def test_keys_and_values_of_other_layers_are_refused() -> None:
    """What layers hand each other beside the hidden state would have to cross the link."""
    arguments = {"hidden_states": torch.empty(1, 3, 8, device="meta"), "shared": {"keys": torch.empty(8)}}
    with pytest.raises(ModelNotSupportedError, match='layer 4 exchanges "shared" with other layers'):
        probe_layer(Sharing(), arguments, what="layer 4")


def test_shapes_are_those_of_the_layers() -> None:
    """Latent attention is stored as the heads that it expands to; grouped heads are stored once."""
    latent = probe_layers(build_tree(tiny_model("deepseek_v3"), dtype=torch.float32))
    assert {(shape.kv_heads, shape.key_dim, shape.value_dim) for shape in latent} == {(4, 16, 12)}
    grouped = probe_layers(build_tree(tiny_model("qwen3"), dtype=torch.float32))
    assert {(shape.kv_heads, shape.key_dim, shape.value_dim) for shape in grouped} == {(2, 12, 12)}


@pytest.mark.parametrize("text", ["{", '{"model_type": "no_such_type"}', "{}"])
def test_a_configuration_that_says_nothing_is_refused(tmp_path: Path, text: str) -> None:
    """The error names the file in one line."""
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelNotFoundError, match=r"config\.json") as caught:
        build_tree(tmp_path, dtype=torch.float32)
    assert "\n" not in str(caught.value)
