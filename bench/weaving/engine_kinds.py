"""The kinds of engines by name, with their models ready.

Knows where models and references are kept. Does not know what is measured on them.
"""

import asyncio
import json
from pathlib import Path

from edgeweave.child import child_command
from edgeweave.errors import UnavailableError
from edgeweave.sim.loads import profile_named
from weaving.engines import EmulatedEngines, Engines, ModelEngines
from weaving.reference_cache import ReferenceCache, whole_model

_PROFILE = "npu"
_SEEDED = {"real": (16, "1:1"), "deep": (48, "3:3")}
"""Layers of a seeded model, and how it is split."""


async def engines_named(name: str, *, cache: Path) -> Engines:
    """Return engines of the kind called `name`; their model is made below `cache` if it is not there.

    Raises:
        UnavailableError: the model could not be made.
    """
    if name == "emulated":
        return EmulatedEngines(profile_named(_PROFILE))
    if name in _SEEDED:
        num_layers, split = _SEEDED[name]
        folder = await _seeded_model(cache, num_layers)
    else:
        folder, split = await _embedded_model(cache), "1:1"
    references = ReferenceCache(folder, cache / "bench" / "references")
    vocab_size = json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    return ModelEngines(name, folder, vocab_size, references, split)


async def _seeded_model(cache: Path, num_layers: int) -> Path:
    folder = cache / "bench" / f"qwen2-256x{num_layers}-seed-7"
    await whole_model("make", folder, str(num_layers))
    return folder


async def _embedded_model(cache: Path) -> Path:
    child = await asyncio.create_subprocess_exec(
        *child_command("edgeweave.model.embedded", "--cache", str(cache / "models")), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    if child.returncode:
        raise UnavailableError("the embedded model could not be prepared, as said above")
    return Path(output.decode().strip())
