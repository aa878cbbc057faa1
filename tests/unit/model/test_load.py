"""What a side reads, keeps and says of itself."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgeweave.errors import InvalidSettingsError, ModelError, ModelNotFoundError, SplitError
from edgeweave.interleave.nouns import DType, KvCapacity, Row, Segment
from edgeweave.interleave.split import Split
from edgeweave.model import CloudModel, EdgeModel, KvMemory, load_cloud, load_edge
from edgeweave.model.capacity import kept_layers
from edgeweave.model.checkpoint import Checkpoint
from edgeweave.model.loading import fill
from edgeweave.model.part import cut
from edgeweave.model.tree import ModelTree, build_tree
from models.tiny import tiny_model

KV = KvCapacity(block_tokens=4, num_blocks=8)
BODY = Segment(2, 5)


def _filled(folder: Path, *, edge: bool) -> tuple[ModelTree, Checkpoint]:
    """Cut 2:1 and load one side; return its tree and the checkpoint that saw what was read."""
    tree = build_tree(folder, dtype=torch.float32)
    checkpoint = Checkpoint.open(folder)
    cut(tree, kept=kept_layers(BODY, len(tree.layers), edge=edge), with_outside=edge)
    fill(tree.model, checkpoint, dtype=torch.float32, device=torch.device("cpu"))
    return tree, checkpoint


def _layers_of(names: Iterable[str]) -> set[int | None]:
    """Return the layer numbers in tensor names; `None` for tensors around the layers."""
    parts = [next((int(part) for part in name.split(".") if part.isdecimal()), None) for name in names]
    return set(parts)


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "deepseek_v3", "gpt2", "mixtral"])
def test_a_cloud_reads_its_layers_and_nothing_else(architecture: str) -> None:
    """Neither embedding nor output head nor a layer of the edge is read, and none is in memory."""
    tree, checkpoint = _filled(tiny_model(architecture), edge=False)
    assert _layers_of(checkpoint.tensors_read) == {2, 3, 4}
    assert _layers_of(tree.model.state_dict()) == {2, 3, 4}
    assert all(tensor.device.type == "cpu" for tensor in tree.model.state_dict().values())


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "deepseek_v3", "gpt2", "mixtral"])
def test_an_edge_reads_its_ends_and_what_lies_around(architecture: str) -> None:
    """The two sides together read every tensor, none of a layer twice."""
    folder = tiny_model(architecture)
    _, at_edge = _filled(folder, edge=True)
    _, at_cloud = _filled(folder, edge=False)
    assert _layers_of(at_edge.tensors_read) == {0, 1, 5, None}
    assert at_edge.tensors_read | at_cloud.tensors_read == at_edge.entries.keys()
    assert not at_edge.tensors_read & at_cloud.tensors_read


def test_tied_embeddings_are_in_memory_once() -> None:
    """The output head of a tied model is its embedding."""
    tree, _ = _filled(tiny_model("qwen2"), edge=True)
    head = tree.model.get_output_embeddings()  # type: ignore[no-untyped-call]  # untyped there
    assert head.weight is tree.model.get_input_embeddings().weight


def test_experts_of_the_hub_are_merged() -> None:
    """The checkpoint holds each expert by itself, as the hub does; the layer holds them as one tensor."""
    tree, checkpoint = _filled(tiny_model("mixtral"), edge=False)
    assert any(".experts.3." in name for name in checkpoint.tensors_read)
    merged = [tensor for name, tensor in tree.model.state_dict().items() if ".experts." in name]
    assert {len(tensor) for tensor in merged} == {4}


def _first_logits(edge: EdgeModel, cloud: CloudModel) -> torch.Tensor:
    rows = [Row(1, 0, 4)]
    hidden = cloud.run_segment(rows, edge.run_head(rows, [5, 6, 7, 8]), cloud.body)
    logits = edge.run_tail(rows, hidden, final=[0])
    for side in (edge, cloud):
        side.free([1])
    return logits


def _both(folder: Path, split: Split, dtype: str = "float32") -> tuple[EdgeModel, CloudModel]:
    return load_edge(folder, split=split, dtype=dtype, kv=KV), load_cloud(folder, split=split, dtype=dtype, kv=KV)


def test_shards_are_read_like_one_file(tmp_path: Path) -> None:
    """A side opens shards through their index, has the same weights as from one file, and says the same.

    To the last bit only where they lie in memory alike: some processors add in another order where they do not.
    """
    folder = tiny_model("llama")
    shutil.copy(folder / "config.json", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    place = {name: f"model-{number % 3}.safetensors" for number, name in enumerate(sorted(tensors))}
    for file in set(place.values()):
        save_file({name: tensor for name, tensor in tensors.items() if place[name] == file}, tmp_path / file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))
    for edge in (True, False):
        sharded, whole = (_filled(each, edge=edge)[0].model.state_dict() for each in (tmp_path, folder))
        assert sharded.keys() == whole.keys()
        assert all(torch.equal(sharded[name], whole[name]) for name in whole)
    torch.testing.assert_close(
        _first_logits(*_both(tmp_path, Split())), _first_logits(*_both(folder, Split())), rtol=0, atol=2e-6
    )


@pytest.mark.parametrize("pack_from", [1, 1 << 40], ids=["packed", "plain"])
@pytest.mark.parametrize("runs_directly", [True, False], ids=["direct", "own"])
def test_weights_in_half_precision_are_close(pack_from: int, *, runs_directly: bool) -> None:
    """Hidden states and logits stay float32, and are near those of float32 weights but not the same."""
    folder, cut_in_two = tiny_model("llama"), Split()
    exact = _first_logits(*_both(folder, cut_in_two))
    edge, cloud = (
        load(
            folder, split=cut_in_two, kv=KV, pack_from=pack_from, weights_dtype="bfloat16", runs_directly=runs_directly
        )
        for load in (load_edge, load_cloud)
    )
    assert isinstance(edge, EdgeModel)
    assert isinstance(cloud, CloudModel)
    assert (edge.dtype, edge.token_bytes) == (DType.FLOAT32, 128)
    logits = _first_logits(edge, cloud)
    assert torch.nn.functional.cosine_similarity(exact, logits).item() > 0.99
    assert not torch.equal(exact, logits)


def test_a_type_of_weights_that_is_none_is_refused() -> None:
    """The error names it and what may be chosen."""
    with pytest.raises(ModelError, match='dtype "int4" is not known; choose one of float32'):
        load_edge(tiny_model("llama"), split=Split(), kv=KV, weights_dtype="int4")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_close(dtype: str) -> None:
    """Hidden states have the type that was asked for, logits are float32, and both are near those of float32."""
    exact = _first_logits(*_both(tiny_model("llama"), Split()))
    edge, cloud = _both(tiny_model("llama"), Split(), dtype)
    hidden = edge.run_head([Row(9, 0, 2)], [5, 6])
    assert (hidden.dtype, edge.token_bytes) == (getattr(torch, dtype), 64)
    logits = _first_logits(edge, cloud)
    assert logits.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(exact, logits).item() > 0.99


def test_both_sides_say_the_same_of_the_model() -> None:
    """Facts and fingerprint agree; the body is named in layers of the whole model."""
    edge, cloud = _both(tiny_model("llama"), Split(2, 1))
    assert edge.facts == cloud.facts
    assert (edge.body, edge.num_layers, edge.hidden_size, edge.vocab_size) == (BODY, 6, 32, 192)
    assert edge.eos_token_ids == frozenset({2})
    assert (edge.token_bytes, edge.max_positions, edge.kv) == (128, 512, KV)
    assert edge.fingerprint.dtype is DType.FLOAT32


def test_an_edge_without_a_split_holds_everything() -> None:
    """Its body is empty and its fingerprint names no layers of a head or tail."""
    edge = load_edge(tiny_model("llama"), split=None, kv=KV)
    assert edge.body == Segment(6, 6)
    assert (edge.fingerprint.head_layers, edge.fingerprint.tail_layers) == (0, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_hidden_states_survive_the_way_through_bytes(dtype: str) -> None:
    """Bytes have the stated size, and reading them back copies nothing, unless they cannot be written to."""
    edge = load_edge(tiny_model("llama"), split=Split(), dtype=dtype, kv=KV)
    hidden = edge.run_head([Row(1, 0, 3)], [5, 6, 7])
    payload = bytearray(edge.payload_of(hidden))
    assert len(payload) == 3 * edge.token_bytes
    read = edge.hidden_from(payload, 3)
    assert torch.equal(read, hidden)
    assert torch.equal(edge.hidden_from(bytes(payload), 3), hidden)
    payload[:] = bytes(len(payload))
    assert not read.any()
    with pytest.raises(ValueError, match="are not 2 hidden states"):
        edge.hidden_from(payload, 2)


def test_a_tail_without_final_rows_stores_keys_and_has_no_logits() -> None:
    """Chunks in the middle of a prompt pass the tail for its keys and values alone."""
    edge, cloud = _both(tiny_model("llama"), Split())
    rows = [Row(1, 0, 4)]
    logits = edge.run_tail(rows, cloud.run_segment(rows, edge.run_head(rows, [5, 6, 7, 8]), cloud.body), final=[])
    assert logits.shape == (0, 192)


def test_a_segment_outside_the_body_is_refused() -> None:
    """Layers that a cloud does not hold never run as if they were identities."""
    cloud = load_cloud(tiny_model("llama"), split=Split(2, 1), kv=KV)
    for segment in (Segment(1, 3), Segment(4, 6), Segment(3, 3)):
        with pytest.raises(ValueError, match="is not part of the body"):
            cloud.run_segment([Row(1, 0, 1)], torch.zeros(1, 32), segment)


def test_kv_memory_in_bytes_becomes_blocks() -> None:
    """Six layers of 2 heads x (8 + 8) floats take 768 bytes a token at the edge that holds all of them."""
    folder = tiny_model("llama")
    assert load_edge(folder, split=None, kv=KvMemory(768 * 16 * 5 + 1)).kv.num_blocks == 5
    assert load_cloud(folder, split=Split(2, 1), kv=KvMemory(384 * 8 * 5, block_tokens=8)).kv == KvCapacity(8, 5)
    with pytest.raises(InvalidSettingsError, match="10 bytes hold no KV block of 12288 bytes; give more KV memory"):
        load_edge(folder, split=None, kv=KvMemory(10))


def test_what_cannot_be_loaded_says_so() -> None:
    """Split, type and device are checked before weights are read."""
    folder = tiny_model("llama")
    with pytest.raises(SplitError, match="no layer of a model of 6"):
        load_edge(folder, split=Split(3, 3), kv=KV)
    with pytest.raises(ModelError, match="choose one of float32, bfloat16, float16"):
        load_edge(folder, split=Split(), dtype="int8", kv=KV)
    with pytest.raises(InvalidSettingsError, match="choose one of cpu, cuda, npu"):
        load_edge(folder, split=Split(), device="tpu", kv=KV)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    """A side misses its own tensors only."""
    folder = tiny_model("llama")
    shutil.copy(folder / "config.json", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.3.mlp.up_proj.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelNotFoundError, match=r"lacks tensor model\.layers\.3\.mlp\.up_proj\.weight"):
        load_cloud(tmp_path, split=Split(), kv=KV)
    assert load_edge(tmp_path, split=Split(), kv=KV).body == Segment(1, 5)


def test_a_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    """A checkpoint of another size is not filled up with noise."""
    folder = tiny_model("llama")
    config = json.loads((folder / "config.json").read_text()) | {"intermediate_size": 40}
    (tmp_path / "config.json").write_text(json.dumps(config))
    shutil.copy(folder / "model.safetensors", tmp_path)
    with pytest.raises(ModelNotFoundError, match="in another shape than"):
        load_cloud(tmp_path, split=Split(), kv=KV)
