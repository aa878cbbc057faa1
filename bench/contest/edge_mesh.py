"""A mesh in one place of real processes, asked by the SDK: `python -m contest.edge_mesh FOLDER`.

Scheduler, edge engine and client share the core that this program is on. Its parts begin to work when the first request
comes, and say signs of life while others have their turn.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from contest.room import Room, add_room
from contest.turns import Prompts, Streams
from edgeweave.cli.mesh import Mesh
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.client import Client

PLAN = "adaptive"
"""In one place: prompts first, until the step is full."""
DEADLINE_S = 300.0


def main(argv: Sequence[str]) -> None:
    """Take turns until there are no more; the mesh ends with them."""
    streams = Streams.taken()
    given = _parser().parse_args(argv)
    options = mesh_options(given.folder, Room.of(given), piece_tokens=given.piece_tokens)
    settings = {
        "plan": PLAN,
        "flags": " ".join(word for words in options.extra_flags.values() for word in words),
        "processes": "scheduler, edge engine and client, all on the core",
    }
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            client = runner.run(_started(options, stack))
            streams.serve_player(MeshPlayer(client, runner), settings=settings, is_one_process=False)
        finally:
            runner.run(stack.aclose())


def mesh_options(folder: Path, room: Room, *, piece_tokens: int) -> MeshOptions:
    """Return a mesh in one place that takes in all prompts of a case as one chunk."""
    scheduler = {
        "--max-batch-size": room.max_sequences,
        "--max-prefill-tokens": room.max_prefill_tokens,
        "--chunk-tokens": room.max_prefill_tokens,
        "--max-seq-len": room.max_seq_tokens,
    }
    flags = {
        "scheduler": [str(word) for pair in scheduler.items() for word in pair],
        "edge": ["--head-piece-tokens", str(piece_tokens)],
    }
    return MeshOptions(
        model=folder, with_gateway=False, is_centralized=True, dtype="float32", plan=PLAN, extra_flags=flags
    )


class MeshPlayer:
    """Plays through a client that is connected."""

    def __init__(self, client: Client, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], None]:
        """Return the outputs. All prompts are submitted at once; when each begins is the scheduler's choice."""
        return self._runner.run(self._all(prompts, num_tokens=num_tokens)), None

    async def _all(self, prompts: Prompts, *, num_tokens: int) -> list[list[int]]:
        return await asyncio.gather(*(self._one(prompt, num_tokens=num_tokens) for prompt in prompts))

    async def _one(self, prompt: Sequence[int], *, num_tokens: int) -> list[int]:
        deltas = self._client.generate(prompt, max_tokens=num_tokens, deadline_s=DEADLINE_S)
        return [token async for delta in deltas for token in delta.token_ids]


async def _started(options: MeshOptions, stack: AsyncExitStack) -> Client:
    mesh = await stack.enter_async_context(Mesh.start(options))
    return await stack.enter_async_context(Client(mesh.scheduler_address))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A mesh in one place.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--piece-tokens", type=int, required=True, help="tokens of a prefill that run as one unit")
    add_room(parser)
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
