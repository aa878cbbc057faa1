"""The whole model under continuous batching of `transformers`: `python -m contest.transformers_batch FOLDER`.

It is what `generate_batch` runs, with its thread kept alive between turns. No other setting was seen to be much faster
on a CPU: pages of 16 to 1,024 tokens and more of them, smaller batches of tokens, sharing of blocks, eager attention,
and compiling were tried; batches made ahead need an accelerator.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import ContinuousBatchingConfig, GenerationConfig

from contest.room import Room, add_room
from contest.transformers_generate import ATTENTION, loaded
from contest.turns import Prompts, Streams

PAGE_TOKENS = 256
SPARE_BLOCKS = 2
ANSWER_DEADLINE_S = 300.0


def main(argv: Sequence[str]) -> None:
    """Take turns until there are no more."""
    streams = Streams.taken()
    given = _parser().parse_args(argv)
    torch.set_num_threads(1)
    config = batching_config(Room.of(given))
    greedy = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0)  # type: ignore[no-untyped-call]  # untyped there
    settings = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "dtype": "float32",
        "attention": ATTENTION,
        "page": f"{config.page_size} tokens",
        "blocks": str(config.num_blocks),
        "batch tokens": str(config.max_batch_tokens),
        "prefix sharing": "off",
    }
    with torch.inference_mode():  # its thread computes in the mode of whoever starts it
        manager = loaded(given.folder).init_continuous_batching(greedy, continuous_batching_config=config)
        manager.warmup()
        manager.start()
    try:
        streams.serve_player(BatchPlayer(manager), settings=settings)
    finally:
        manager.stop()


def batching_config(room: Room) -> ContinuousBatchingConfig:
    """Return the settings that were the fastest, with `room` and little more."""
    blocks = room.max_sequences * math.ceil(room.max_seq_tokens / PAGE_TOKENS) + SPARE_BLOCKS
    return ContinuousBatchingConfig(
        page_size=PAGE_TOKENS,
        num_blocks=blocks,
        max_batch_tokens=room.max_prefill_tokens,
        max_requests_per_batch=room.max_sequences,
        allow_block_sharing=False,
        use_async_batching=False,
    )


class BatchPlayer:
    """Plays on a manager that runs."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], None]:
        """Return the outputs; a request tells only when it is done."""
        requests = self._manager.add_requests([list(prompt) for prompt in prompts], max_new_tokens=num_tokens)
        outputs: dict[str, list[int]] = {}
        while len(outputs) < len(requests):
            result = self._manager.get_result(timeout=ANSWER_DEADLINE_S)
            if result is None or result.error is not None:
                raise RuntimeError(f"continuous batching gave no answer: {result and result.error}")
            outputs[result.request_id] = list(result.generated_tokens)
        return [outputs[request] for request in requests], None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Continuous batching of transformers.")
    parser.add_argument("folder", type=Path)
    add_room(parser)
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
