"""From a `config.json` and two peaks to the times of a layer."""

import json
from pathlib import Path
from typing import Any

import pytest

from edgeweave.errors import InvalidRequestError, ModelError, ModelNotFoundError, SplitError
from edgeweave.interleave.split import Split
from edgeweave.sim.hardware import Hardware, Machine
from edgeweave.sim.load import Arrival, Load
from edgeweave.sim.model_size import ModelSize
from edgeweave.sim.roofline import Usage, layer_times, profile_of

SMALL = {
    "hidden_size": 100,
    "intermediate_size": 200,
    "num_attention_heads": 10,
    "num_key_value_heads": 5,
    "num_hidden_layers": 4,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
}
ATTENTION = 2 * 100 * 100 + 2 * 100 * 50  # q and o, k and v
MLP = 3 * 100 * 200
HARDWARE = Hardware("h", peak_tflops=1, bandwidth_gb_per_s=1, memory_gb=1, compute_share=1, bandwidth_share=1)
MACHINE = Machine(HARDWARE)  # 1e6 operations and 1e3 bytes a microsecond
USAGE = Usage(num_rows=4, prompt_tokens=20, output_tokens=10)


def size_of(folder: Path, **changes: Any) -> ModelSize:
    """Return the size of the small model with other keys; a key of `None` is left out."""
    config = {key: value for key, value in {**SMALL, **changes}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return ModelSize.of_folder(folder)


def test_weights_of_a_dense_layer(tmp_path: Path) -> None:
    """Grouped attention and a gated MLP, two bytes a value."""
    size = size_of(tmp_path)
    assert size.layer_bytes == 2 * (ATTENTION + MLP)
    assert size.step_bytes(1) == size.step_bytes(100) == size.layer_bytes
    assert size.kv_token_bytes == 2 * 5 * 10 * 2
    assert size.token_flops(0) == 2 * (ATTENTION + MLP)
    assert size.token_flops(7) - size.token_flops(0) == 4 * 100 * 7


def test_a_step_reads_the_experts_that_its_rows_are_sent_to(tmp_path: Path) -> None:
    """One row reads as many as it uses, many rows nearly all; memory holds all, and a token computes its own."""
    size = size_of(tmp_path, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=200)
    assert size.layer_bytes == 2 * (ATTENTION + 8 * MLP)
    assert size.step_bytes(1) == pytest.approx(2 * (ATTENTION + 2 * MLP))
    assert size.step_bytes(200) == pytest.approx(size.layer_bytes)
    assert size.token_flops(0) == 2 * (ATTENTION + 2 * MLP)


def test_sizes_that_may_be_left_out(tmp_path: Path) -> None:
    """As many KV heads as heads, heads as wide as they fit, float32."""
    size = size_of(tmp_path, num_key_value_heads=None, torch_dtype=None)
    assert (size.num_kv_heads, size.head_size, size.value_bytes) == (10, 10, 4)
    assert size_of(tmp_path, head_dim=16).head_size == 16


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"hidden_size": None}, "hidden_size is None"),
        ({"intermediate_size": "wide"}, "intermediate_size is 'wide'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"torch_dtype": "int3"}, "dtype 'int3' is not one of"),
        ({"kv_lora_rank": 512}, "kv_lora_rank are not counted"),
        ({"quantization_config": {"bits": 4}}, "quantization_config are not counted"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "linear_attention are not counted"),
        ({"num_experts": 8}, "num_experts_per_tok is None"),
    ],
)
def test_what_cannot_be_counted_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        size_of(tmp_path, **changes)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="cannot be read"):
        ModelSize.of_folder(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match="is not JSON"):
        ModelSize.of_folder(tmp_path)
    (tmp_path / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ModelError, match="no JSON object"):
        ModelSize.of_folder(tmp_path)


def test_a_small_step_is_bound_by_what_it_reads(tmp_path: Path) -> None:
    """Weights once, KV of 25 tokens a row, and the fixed time of a layer."""
    times = layer_times(size_of(tmp_path), MACHINE, USAGE)
    assert times.step_us(4) == pytest.approx(50 + 2 * (ATTENTION + MLP) / 1e3 + 4 * 25 * 200 / 1e3)
    assert times.prefill_us(1) == pytest.approx(50 + (2 * (ATTENTION + MLP) + 4 * 100 * 10) / 1e6)


def test_a_full_step_is_bound_by_compute_where_it_must(tmp_path: Path) -> None:
    """With memory a thousand times as fast, the rows of a full step take what they compute."""
    fast = Machine(Hardware("h", 1, 1e6, 1, compute_share=1, bandwidth_share=1))
    size = size_of(tmp_path)
    times = layer_times(size, fast, USAGE)
    kv_us = 4 * 25 * 200 / 1e9 * 1e3
    assert times.step_us(4) == pytest.approx(50 + 4 * size.token_flops(25) / 1e6 + kv_us, rel=1e-3)


def test_usage_is_that_of_the_load() -> None:
    load = Load("two", (Arrival(0, 10, 4), Arrival(0, 30, 8)), max_open=1)
    assert Usage.of(load, max_batch_size=8) == Usage(num_rows=1, prompt_tokens=20, output_tokens=6)


def test_a_profile_of_both_machines(tmp_path: Path) -> None:
    """The output head is the edge's, read once a step; each device halves what it shares."""
    size = size_of(tmp_path)
    profile = profile_of(size, cloud=Machine(HARDWARE, 2), edge=MACHINE, split=Split(1, 1), usage=USAGE)
    assert (profile.num_layers, profile.body_layers, profile.token_bytes) == (4, 2, 200)
    assert profile.logits_row_us == pytest.approx(100 * 1000 * 2 / 1e3 / 4)
    assert profile.cloud.prefill_token_us == pytest.approx(profile.edge.prefill_token_us / 2)
    assert profile.name.endswith("on 2 x h")


def test_a_model_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """With what it takes, what there is, and on which side."""
    size = size_of(tmp_path)
    tiny = Machine(Hardware("tiny", 1, 1, memory_gb=1e-5))
    with pytest.raises(InvalidRequestError, match=r"cloud: 2 layers of .* take .* tiny has"):
        profile_of(size, cloud=tiny, edge=MACHINE, split=Split(1, 1), usage=USAGE)
    with pytest.raises(InvalidRequestError, match="edge: 2 layers of"):
        profile_of(size, cloud=MACHINE, edge=tiny, split=Split(1, 1), usage=USAGE)
    with pytest.raises(SplitError, match="no layer"):
        profile_of(size, cloud=MACHINE, edge=MACHINE, split=Split(2, 2), usage=USAGE)
