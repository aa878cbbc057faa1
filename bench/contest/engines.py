"""The engines of the contest by name: what runs each, and how it is called.

Knows commands. Starts nothing.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from contest.models import Model
from contest.room import Room
from edgeweave.child import child_command
from weaving.reference_cache import BENCH


class Engine(StrEnum):
    """Who takes part, in the order of a table."""

    OURS = "ours"
    OURS_BF16 = "ours-bf16"
    OURS_MESH = "ours-mesh"
    GENERATE = "generate"
    GENERATE_BATCH = "generate_batch"
    VLLM = "vllm"


EXACT = frozenset({Engine.OURS, Engine.OURS_MESH})
"""Engines whose tokens have to be those of the reference: ours, computing in its number format."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class Start:
    """What an engine is started for: a model, on a core, with room for all cases.

    `vllm_python` is the interpreter of an environment with vLLM, `None` where there is none.
    """

    model: Model
    room: Room
    core: int
    piece_tokens: int
    vllm_python: Path | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A program and the variables that it gets beside those of this process."""

    words: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """All its variables."""
        return {**os.environ, **_ONE_THREAD, **_OFFLINE, "PYTHONPATH": str(BENCH), **self.variables}


def command_of(engine: Engine, start: Start) -> Command | None:
    """Return the command of the engine called `engine`; `None` where it is not installed."""
    folder = str(start.model.folder)
    pieces = ["--piece-tokens", str(start.piece_tokens)]
    match engine:
        case Engine.OURS:
            return _ours("edge_model", folder, *pieces)
        case Engine.OURS_BF16:
            return _ours("edge_model", folder, *pieces, "--weights-dtype", "bfloat16")
        case Engine.OURS_MESH:
            return _ours("edge_mesh", folder, *pieces, *start.room.words)
        case Engine.GENERATE:
            return _ours("transformers_generate", folder)
        case Engine.GENERATE_BATCH:
            return _ours("transformers_batch", folder, *start.room.words)
        case Engine.VLLM:
            return None if start.vllm_python is None else _vllm(start.vllm_python, start)


def memory_command() -> Command:
    """Return the command that reads memory."""
    return _ours("memory")


def profile_command(engine: Engine, start: Start) -> Command | None:
    """Return the command that takes a step of `engine` apart; `None` where it is not ours or has a mesh around it."""
    command = command_of(engine, start) if engine in {Engine.OURS, Engine.OURS_BF16} else None
    return command and Command([word.replace("contest.edge_model", "contest.profile") for word in command.words])


def _ours(module: str, *words: str) -> Command:
    return Command(child_command(f"contest.{module}", *words))


def _vllm(python: Path, start: Start) -> Command:
    words = [str(python), "-m", "contest.vllm_offline", str(start.model.folder), *start.room.words]
    variables = {
        "VLLM_CPU_OMP_THREADS_BIND": str(start.core),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
    }
    return Command(words, variables)
