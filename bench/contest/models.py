"""The models of the contest by name, ready in folders, and what a decode step has to read of them.

Knows files. Loads no weights.
"""

import asyncio
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeweave.child import child_command
from edgeweave.errors import UnavailableError
from weaving.engine_kinds import engines_named
from weaving.engines import ModelEngines
from weaving.reference_cache import BENCH, ReferenceCache

BATCHES: Mapping[str, Sequence[int]] = {"llama51m": (1, 4, 8, 16), "embedded": (1, 8)}
"""The models, and the batches at which each decodes."""
_LLAMA_FOLDER = "llama-512x16-seed-7"
_HEADER_LENGTH_BYTES = 8
_INPUT_EMBEDDING = "embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class Model:
    """A model in a folder. `num_read` weights of `num_parameters` are read by each decode step."""

    name: str
    folder: Path
    vocab_size: int
    num_parameters: int
    num_read: int
    references: ReferenceCache


async def model_named(name: str, *, cache: Path) -> Model:
    """Return the model called `name`; it is made below `cache` if it is not there.

    Raises:
        UnavailableError: it could not be made.
    """
    folder = await (_llama(cache) if name == "llama51m" else _embedded(cache))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    sizes = _tensor_sizes(folder)
    references = ReferenceCache(folder, cache / "bench" / "references")
    is_tied = config.get("tie_word_embeddings", False)
    return Model(
        name, folder, config["vocab_size"], sum(sizes.values()), num_read_by_a_step(sizes, is_tied=is_tied), references
    )


def num_read_by_a_step(sizes: Mapping[str, int], *, is_tied: bool) -> int:
    """Return how many elements a decode step reads of tensors with `sizes` by name.

    All but the input embedding, of which it looks up some rows; where that is the output head as well, all.
    """
    return sum(size for name, size in sizes.items() if is_tied or not name.endswith(_INPUT_EMBEDDING))


def _tensor_sizes(folder: Path) -> dict[str, int]:
    """Return the number of elements of each tensor in the safetensors files of `folder`."""
    sizes: dict[str, int] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(_HEADER_LENGTH_BYTES), "little")
            header: dict[str, Any] = json.loads(opened.read(length))
        sizes |= {name: math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__"}
    return sizes


async def _llama(cache: Path) -> Path:
    folder = cache / "bench" / _LLAMA_FOLDER
    child = await asyncio.create_subprocess_exec(
        *child_command("contest.llama", str(folder)), env={**os.environ, "PYTHONPATH": str(BENCH)}
    )
    if await child.wait():
        raise UnavailableError(f"{folder}: the Llama of the contest could not be made, as said above")
    return folder


async def _embedded(cache: Path) -> Path:
    engines = await engines_named("embedded", cache=cache)
    if not isinstance(engines, ModelEngines):
        raise TypeError("the embedded engines compute a model")
    return engines.model
