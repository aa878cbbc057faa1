"""The whole model under `transformers` and its own `generate`: `python -m contest.transformers_generate FOLDER`.

A static batch of equal lengths: nothing is padded, and no sequence ends early.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig

from contest.turns import Prompts, Streams

ATTENTION = "sdpa"


def main(argv: Sequence[str]) -> None:
    """Take turns until there are no more."""
    streams = Streams.taken()
    folder: Path = _parser().parse_args(argv).folder
    torch.set_num_threads(1)
    settings = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "dtype": "float32",
        "attention": ATTENTION,
        "cache": "dynamic",
        "batch": "static, equal lengths, no padding",
    }
    streams.serve_player(GeneratePlayer(loaded(folder)), settings=settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="contest.transformers_generate", description="Play turns with `generate`.")
    parser.add_argument("folder", type=Path, help="of the model")
    return parser


def loaded(folder: Path) -> Any:
    """Return the model in float32, without what its folder says about generating."""
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation=ATTENTION, local_files_only=True
    )
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # transformers types only its fields
    return model


class GeneratePlayer:
    """Plays on a model that is loaded."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], None]:
        """Return the outputs; `generate` does not tell when they began."""
        greedy = GenerationConfig(  # type: ignore[no-untyped-call]  # the same
            do_sample=False, max_new_tokens=num_tokens, eos_token_id=None, pad_token_id=0
        )
        ids = torch.tensor(prompts)  # [prompts, tokens]
        with torch.inference_mode():
            output = self._model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=greedy)
        outputs: list[list[int]] = output[:, ids.shape[1] :].tolist()
        return outputs, None


if __name__ == "__main__":
    main(sys.argv[1:])
