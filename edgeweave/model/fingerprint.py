"""What a side was built from, as two digests that both sides compare before they serve.

The digest of the weights covers name, type, shape and size of each tensor and a few of its bytes, so that it costs
milliseconds for a checkpoint of any size, and two checkpoints of one architecture still differ.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from edgeweave.interleave.nouns import DType, Fingerprint
from edgeweave.interleave.protocol import PROTOCOL
from edgeweave.interleave.split import Split
from edgeweave.model.checkpoint import Checkpoint, TensorEntry

# Keys of config.json that say who wrote the file, not what the model is.
_VOLATILE = frozenset({"_name_or_path", "transformers_version", "torch_dtype", "dtype"})
_SAMPLE_BYTES = 64


def fingerprint_of(checkpoint: Checkpoint, *, split: Split | None, dtype: DType) -> Fingerprint:
    """Return the fingerprint of `checkpoint` under `split`; a model in one place has head and tail of 0 layers."""
    return Fingerprint(
        model=_config_digest(checkpoint.config),
        weights=_weights_digest(checkpoint),
        head_layers=split.head_layers if split else 0,
        tail_layers=split.tail_layers if split else 0,
        dtype=dtype,
        protocol=PROTOCOL,
    )


def _config_digest(config: dict[str, Any]) -> bytes:
    kept = {key: value for key, value in config.items() if key not in _VOLATILE}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).digest()


def _weights_digest(checkpoint: Checkpoint) -> bytes:
    digest = hashlib.sha256()
    by_file: dict[Path, list[tuple[str, TensorEntry]]] = {}
    for name, entry in sorted(checkpoint.entries.items()):
        digest.update(repr((name, entry.dtype, entry.shape, entry.stop - entry.start)).encode())
        by_file.setdefault(entry.file, []).append((name, entry))
    for file in sorted(by_file):
        _add_samples(digest, file, by_file[file])
    return digest.digest()


def _add_samples(digest: "hashlib._Hash", file: Path, entries: Iterable[tuple[str, TensorEntry]]) -> None:
    """Add bytes from the begin, the middle and the end of each tensor of `file`."""
    with file.open("rb") as stream:
        for _, entry in entries:
            for offset in (entry.start, (entry.start + entry.stop) // 2, max(entry.start, entry.stop - _SAMPLE_BYTES)):
                stream.seek(offset)
                digest.update(stream.read(min(_SAMPLE_BYTES, entry.stop - offset)))
