"""References of the whole model, asked for once and kept in a folder.

Knows the program that answers, and what its answers depend on. Does not load a model.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from edgeweave.child import child_command
from edgeweave.errors import UnavailableError
from weaving.checks import Reference
from weaving.loads import Prompt

BENCH = Path(__file__).parents[1]
_PACKAGES = ("torch", "transformers")


@dataclass(frozen=True, slots=True)
class ReferenceCache:
    """Answers of the model in `model`, whose folder name stands for its content, kept in `folder`."""

    model: Path
    folder: Path

    async def references(self, prompts: Sequence[Prompt], num_tokens: Sequence[int]) -> list[Reference]:
        """Return the greedy outputs of `transformers.generate`; compute them where they were never asked for.

        Raises:
            UnavailableError: the program that computes them failed; with its last line.
        """
        request = json.dumps({"prompts": prompts, "num_tokens": num_tokens})
        place = self.folder / f"{self._digest(request)}.json"
        if not place.exists():
            content = await whole_model("answer", self.model, request=request)
            self.folder.mkdir(parents=True, exist_ok=True)
            beside = place.with_suffix(f".{os.getpid()}")
            beside.write_bytes(content)
            beside.replace(place)
        stored = json.loads(place.read_text(encoding="utf-8"))
        return [
            Reference(tuple(tokens), tuple(margins))
            for tokens, margins in zip(stored["outputs"], stored["margins"], strict=True)
        ]

    def _digest(self, request: str) -> str:
        parts = (self.model.name, request, *(metadata.version(name) for name in _PACKAGES))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


async def whole_model(verb: str, folder: Path, *words: str, request: str = "") -> bytes:
    """Run the program of the whole model and return what it writes.

    Raises:
        UnavailableError: it failed; with its last line.
    """
    child = await asyncio.create_subprocess_exec(
        *child_command("weaving.whole_model", verb, str(folder), *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(BENCH)},
    )
    try:
        output, errors = await child.communicate(request.encode())
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        last_line = (errors.decode(errors="replace").strip().splitlines() or ["no word of why"])[-1]
        raise UnavailableError(f"the whole model ended with exit code {child.returncode}: {last_line}")
    return output
