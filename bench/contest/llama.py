"""Makes the Llama of the contest: 51 million parameters of seeded random weights.

A program of its own, so that the bench does not carry torch beside what it measures: `python -m contest.llama FOLDER`.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from weaving.seeded import spread_weights

SEED = 7


def main(argv: Sequence[str]) -> None:
    """Write the model to the folder that is named; it appears whole, and stays as it is where it exists."""
    folder: Path = _parser().parse_args(argv).folder
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        written = Path(beside) / folder.name
        _random_model().save_pretrained(written)
        with suppress(FileExistsError):  # another process was faster, with the same content
            os.rename(written, folder)  # noqa: PTH104  unlike Path.replace it never overwrites a folder that has content


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="contest.llama", description="Write a Llama of seeded random weights.")
    parser.add_argument("folder", type=Path, help="where it is to be written")
    return parser


def _random_model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=16,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(config)
    spread_weights(model)
    return model


if __name__ == "__main__":
    main(sys.argv[1:])
