"""Model folders: what is missing or broken is said, and what is there has a fingerprint."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgeweave.errors import ModelNotFoundError
from edgeweave.interleave.nouns import DType, Fingerprint
from edgeweave.interleave.protocol import PROTOCOL
from edgeweave.interleave.split import Split
from edgeweave.model.checkpoint import Checkpoint
from edgeweave.model.fingerprint import fingerprint_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two tensors."""
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 4}')
    save_file({"a": torch.arange(500.0), "b": torch.ones(2, 3)}, tmp_path / "model.safetensors")
    return tmp_path


def test_tensors_are_read_when_they_are_asked_for(folder: Path) -> None:
    """Opening reads headers only."""
    checkpoint = Checkpoint.open(folder)
    assert {name: entry.shape for name, entry in checkpoint.entries.items()} == {"a": (500,), "b": (2, 3)}
    assert checkpoint.tensors_read == set()
    assert torch.equal(checkpoint.stored("b")[...], torch.ones(2, 3))
    assert checkpoint.tensors_read == {"b"}


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The error says which path to check."""
    with pytest.raises(ModelNotFoundError, match="nowhere does not exist; check the path"):
        Checkpoint.open(tmp_path / "nowhere")


def test_a_missing_configuration_is_named(folder: Path) -> None:
    """A folder without config.json is no model."""
    (folder / "config.json").unlink()
    with pytest.raises(ModelNotFoundError, match=r"config\.json does not exist"):
        Checkpoint.open(folder)


def test_missing_weights_are_named(folder: Path) -> None:
    """The error says what kind of file is wanted."""
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelNotFoundError, match=r"lacks model\.safetensors; fetch the weights as safetensors"):
        Checkpoint.open(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    """The index says which files belong to the model."""
    index = {"weight_map": {"a": "model.safetensors", "c": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelNotFoundError, match=r"lacks model-2\.safetensors"):
        Checkpoint.open(folder)


@pytest.mark.parametrize("kept_bytes", [0, 4, 20, 300])
def test_a_file_that_was_cut_short_is_named(folder: Path, kept_bytes: int) -> None:
    """A broken download is found before anything is computed."""
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept_bytes])
    with pytest.raises(ModelNotFoundError, match="was cut short; fetch it again"):
        Checkpoint.open(folder)


def _fingerprint(folder: Path, split: Split | None = None, dtype: DType = DType.FLOAT32) -> Fingerprint:
    return fingerprint_of(Checkpoint.open(folder), split=split, dtype=dtype)


def test_a_copy_has_the_same_fingerprint(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Path, order of keys and the version that wrote the configuration do not matter."""
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("copy") / "model")
    (copy / "config.json").write_text('{"transformers_version": "9", "hidden_size": 4, "model_type": "llama"}')
    assert _fingerprint(copy) == _fingerprint(folder)
    assert _fingerprint(folder, Split(2, 1)).head_layers == 2
    assert _fingerprint(folder).protocol == PROTOCOL


def test_another_model_has_another_fingerprint(folder: Path) -> None:
    """A changed value, shape, name or setting shows, and says on which side of the comparison."""
    before = _fingerprint(folder)
    tensors = load_file(folder / "model.safetensors")
    variants = [
        tensors | {"b": torch.zeros(2, 3)},
        tensors | {"b": torch.ones(3, 2)},
        {"a": tensors["a"], "c": tensors["b"]},
    ]
    for variant in variants:
        save_file(variant, folder / "model.safetensors")
        assert _fingerprint(folder).weights != before.weights
        assert _fingerprint(folder).model == before.model
    (folder / "config.json").write_text('{"model_type": "llama", "hidden_size": 8}')
    assert _fingerprint(folder).model != before.model
