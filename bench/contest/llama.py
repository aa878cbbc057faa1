"""Makes the Llama of the contest: 51 million parameters of seeded random weights.

A program of its own, so that the bench does not carry torch beside what it measures: `python -m contest.llama FOLDER`.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SEED = 7


def main(argv: Sequence[str]) -> None:
    """Write the model to the folder that is named; it appears whole, and stays as it is where it exists."""
    (folder,) = map(Path, argv)
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        written = Path(beside) / folder.name
        _random_model().save_pretrained(written)
        with suppress(FileExistsError):  # another process was faster, with the same content
            os.rename(written, folder)  # noqa: PTH104  unlike Path.replace it never overwrites a folder that has content


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
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            _spread(name, tensor)
    return model


def _spread(name: str, tensor: torch.Tensor) -> None:
    """Give `tensor` values under which each layer counts, so that no output repeats itself."""
    if "embed" in name:
        tensor.normal_(std=0.2)
    elif tensor.ndim > 1:
        tensor.normal_(std=1.6 * min(tensor.shape) ** -0.5)
    else:
        tensor.add_(torch.empty_like(tensor).normal_(std=0.2))


if __name__ == "__main__":
    main(sys.argv[1:])
