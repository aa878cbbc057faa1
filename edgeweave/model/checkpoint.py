"""A model folder on disk: its configuration and its tensors.

Knows the files of a folder in the layout of the Hugging Face hub: config.json and safetensors, sharded or not. Reads
the header of each file, and of a tensor's bytes only what is asked for. Does not know what a tensor means.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType
from typing import Any

import torch
from safetensors import safe_open

from edgeweave.errors import ModelNotFoundError

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies: bytes `[start, stop)` of `file`."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class StoredTensor:
    """A tensor that is read when it is indexed with `[...]`; transformers' loader takes these in place of tensors."""

    def __init__(self, checkpoint: "Checkpoint", name: str) -> None:
        self._checkpoint = checkpoint
        self._name = name

    def __getitem__(self, everything: EllipsisType) -> torch.Tensor:
        return self._checkpoint.read(self._name)


class Checkpoint:
    """The configuration and the tensors of one folder. `tensors_read` names each tensor whose bytes were read."""

    def __init__(self, folder: Path, *, config: dict[str, Any], entries: Mapping[str, TensorEntry]) -> None:
        self.folder = folder
        self.config = config
        self.entries = entries
        self.tensors_read: set[str] = set()
        self._files: dict[Path, Any] = {}

    @classmethod
    def open(cls, folder: Path) -> "Checkpoint":
        """Read config.json and the headers of all tensor files; raise `ModelNotFoundError` for what is missing."""
        if not folder.is_dir():
            raise ModelNotFoundError(f"model folder {folder} does not exist; check the path")
        config = _read_json(folder / "config.json")
        entries = {name: entry for file in _tensor_files(folder) for name, entry in _entries(file)}
        return cls(folder, config=config, entries=entries)

    def stored(self, name: str) -> StoredTensor:
        """Return the tensor `name`, still unread."""
        return StoredTensor(self, name)

    def read(self, name: str) -> torch.Tensor:
        """Return the tensor `name` as it is stored, on the CPU."""
        self.tensors_read.add(name)
        path = self.entries[name].file
        if path not in self._files:  # a file stays open: its header, with thousands of experts, takes long to read
            self._files[path] = safe_open(path, framework="pt", device="cpu")
        tensor: torch.Tensor = self._files[path].get_tensor(name)
        return tensor

    def close(self) -> None:
        """Close the files that `read` has opened."""
        self._files.clear()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise ModelNotFoundError(f"{path} does not exist; {path.parent} is not a complete model folder") from None
    except ValueError as error:
        raise ModelNotFoundError(f"{path} is not JSON ({error}); fetch it again") from None
    return content


def _tensor_files(folder: Path) -> list[Path]:
    index = folder / _INDEX
    names = set(_read_json(index)["weight_map"].values()) if index.exists() else {_SINGLE}
    files = [folder / name for name in sorted(names)]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        raise ModelNotFoundError(
            f"model folder {folder} lacks {', '.join(missing)}; fetch the weights as safetensors, or convert them"
        )
    return files


def _entries(file: Path) -> Iterator[tuple[str, TensorEntry]]:
    """Yield name and place of each tensor of `file`, from its header alone."""
    with file.open("rb") as stream:
        prefix = stream.read(8)
        (header_bytes,) = struct.unpack("<Q", prefix) if len(prefix) == 8 else (0,)  # noqa: PLR2004  size of the prefix
        header = stream.read(header_bytes) if header_bytes <= file.stat().st_size else b""
    try:
        entries = json.loads(header)
    except ValueError:
        raise ModelNotFoundError(f"{file} is not a safetensors file or was cut short; fetch it again") from None
    body = 8 + header_bytes
    for name, entry in entries.items():
        if name != "__metadata__":
            start, stop = entry["data_offsets"]
            yield name, TensorEntry(file, entry["dtype"], tuple(entry["shape"]), body + start, body + stop)
    last = max((e["data_offsets"][1] for name, e in entries.items() if name != "__metadata__"), default=0)
    if file.stat().st_size < body + last:
        raise ModelNotFoundError(f"{file} was cut short; fetch it again")
