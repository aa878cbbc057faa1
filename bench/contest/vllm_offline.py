"""The whole model under the CPU build of vLLM: `PYTHON -m contest.vllm_offline FOLDER`, in an environment of its own.

Offline, in this very process, so that no other one shares the core. Compiled: that was a tenth faster than eager. Needs
that environment and the standard library. On which core it computes is said by its own variables, which
`contest.engines` sets.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from contest.room import Room, add_room
from contest.turns import Prompts, Streams

SHOWN_VARIABLES = ("VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_KVCACHE_SPACE", "VLLM_ENABLE_V1_MULTIPROCESSING")


def main(argv: Sequence[str]) -> None:
    """Take turns until there are no more."""
    streams = Streams.taken()
    given = _parser().parse_args(argv)
    import vllm  # type: ignore[import-not-found]  # noqa: PLC0415  it is installed beside, and prints when it is imported

    words = engine_words(Room.of(given))
    player = VllmPlayer(vllm, vllm.LLM(given.folder, **words))
    shown = {name: str(value) for name, value in words.items()}
    variables = {name: os.environ[name] for name in SHOWN_VARIABLES if name in os.environ}
    streams.serve_player(player, settings={"vllm": vllm.__version__, **shown, **variables})


def engine_words(room: Room) -> dict[str, Any]:
    """Return the settings that were the fastest, with `room` and no more."""
    return {
        "dtype": "float32",
        "enforce_eager": False,
        "max_num_seqs": room.max_sequences,
        "max_num_batched_tokens": room.max_prefill_tokens,
        "max_model_len": room.max_seq_tokens,
        "enable_prefix_caching": False,
        "skip_tokenizer_init": True,
    }


class VllmPlayer:
    """Plays on an engine that is loaded."""

    def __init__(self, library: Any, engine: Any) -> None:
        self._library = library
        self._engine = engine

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], None]:
        """Return the outputs; offline it does not tell when they began."""
        greedy = self._library.SamplingParams(temperature=0.0, max_tokens=num_tokens, ignore_eos=True, detokenize=False)
        asked = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        answers = self._engine.generate(asked, greedy, use_tqdm=False)
        return [list(answer.outputs[0].token_ids) for answer in answers], None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="vLLM in one place.")
    parser.add_argument("folder")
    add_room(parser)
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
