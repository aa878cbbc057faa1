"""The same prompts on the whole model in one place, and what differs.

Knows token ids. Does not load the model itself: `edgeweave.model.reference` does, in a process of its own.
"""

import asyncio
import json
from collections.abc import Collection, Sequence
from itertools import zip_longest
from pathlib import Path

from edgeweave.child import child_command
from edgeweave.errors import UnavailableError

Tokens = tuple[int, ...]


async def reference_outputs(
    model: Path, prompts: Sequence[Tokens], *, max_tokens: int, stop_token_ids: Collection[int]
) -> list[Tokens]:
    """Return what `transformers` makes of each prompt in one process: greedy, float32, one thread.

    Raises:
        UnavailableError: the process failed; with its last line.
    """
    request = {"prompts": prompts, "max_tokens": max_tokens, "stop_token_ids": sorted(stop_token_ids)}
    child = await asyncio.create_subprocess_exec(
        *child_command("edgeweave.model.reference", "--model", str(model)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await child.communicate(json.dumps(request).encode())
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        last_line = (errors.decode(errors="replace").strip().splitlines() or ["no word of why"])[-1]
        raise UnavailableError(f"the reference ended with exit code {child.returncode}: {last_line}")
    return [tuple(tokens) for tokens in json.loads(output)["outputs"]]


def differences(outputs: Sequence[Tokens], reference: Sequence[Tokens]) -> list[str]:
    """Return a line for each output that is not the reference's, at the first token that differs."""
    lines = []
    for number, (ours, theirs) in enumerate(zip(outputs, reference, strict=True), start=1):
        for index, (our, their) in enumerate(zip_longest(ours, theirs)):
            if our != their:
                lines.append(f"answer {number}, token {index}: {_named(our)} here, {_named(their)} in one process")
                break
    return lines


def _named(token: int | None) -> str:
    return "none" if token is None else str(token)
