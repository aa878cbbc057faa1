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

SEEDED_MODEL = "qwen2-256x16-seed-7"
_PROFILE = "npu"


async def engines_named(name: str, *, cache: Path) -> Engines:
    """Return engines of the kind called `name`; their model is made below `cache` if it is not there.

    Raises:
        UnavailableError: the model could not be made.
    """
    if name == "emulated":
        return EmulatedEngines(profile_named(_PROFILE))
    folder = await (_seeded_model(cache) if name == "real" else _embedded_model(cache))
    references = ReferenceCache(folder, cache / "bench" / "references")
    vocab_size = json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    return ModelEngines(name, folder, vocab_size, references)


async def _seeded_model(cache: Path) -> Path:
    folder = cache / "bench" / SEEDED_MODEL
    await whole_model("make", folder)
    return folder


async def _embedded_model(cache: Path) -> Path:
    child = await asyncio.create_subprocess_exec(
        *child_command("edgeweave.model.embedded", "--cache", str(cache / "models")), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    if child.returncode:
        raise UnavailableError("the embedded model could not be prepared, as said above")
    return Path(output.decode().strip())
