"""The whole model in one process: makes the seeded model of the bench, and says what `transformers` makes of prompts.

A program of its own, so that the bench does not carry torch beside what it measures. `make FOLDER LAYERS` writes the
model. `answer FOLDER` reads one JSON object from standard input, `prompts` and `num_tokens`, and writes one: `outputs`,
the greedy tokens of each prompt in float32, and `margins`, by how much the best logit of each token is above the next.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, Qwen2Config

from weaving.seeded import spread_weights

SEED = 7
VOCAB_SIZE = 8192


def main(argv: Sequence[str]) -> None:
    """Carry out one of the two commands."""
    torch.set_num_threads(1)
    match argv:
        case ["make", folder, num_layers]:
            make_model(Path(folder), num_layers=int(num_layers))
        case ["answer", folder]:
            json.dump(answer(Path(folder), **json.load(sys.stdin)), sys.stdout)
        case _:
            sys.exit(f"{argv}: the command is make FOLDER LAYERS or answer FOLDER")


def make_model(folder: Path, *, num_layers: int) -> None:
    """Write a Qwen2 of random seeded weights to `folder`; it appears whole, and stays as it is where it exists."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        _random_model(num_layers).save_pretrained(beside)
        os.rename(beside, folder)  # noqa: PTH104  it fails where another process was faster, with the same content
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def answer(folder: Path, *, prompts: Sequence[Sequence[int]], num_tokens: Sequence[int]) -> dict[str, Any]:
    """Return the outputs of `transformers.generate`, one prompt at a time, with their margins."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    outputs, margins = [], []
    for prompt, length in zip(prompts, num_tokens, strict=True):
        tokens, apart = _generate(model, prompt, num_tokens=length)
        outputs.append(tokens)
        margins.append(apart)
    return {"outputs": outputs, "margins": margins}


def _random_model(num_layers: int) -> Any:
    config = Qwen2Config(
        vocab_size=VOCAB_SIZE,
        hidden_size=256,
        intermediate_size=1024,
        num_hidden_layers=num_layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    torch.manual_seed(SEED)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]  # untyped there
    spread_weights(model)
    return model


def _generate(model: Any, prompt: Sequence[int], *, num_tokens: int) -> tuple[list[int], list[float]]:
    greedy = GenerationConfig(  # type: ignore[no-untyped-call]  # transformers types only its fields
        do_sample=False, max_new_tokens=num_tokens, eos_token_id=None, pad_token_id=0, repetition_penalty=1.0
    )
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # the same
    ids = torch.tensor([list(prompt)])  # [1, tokens]
    with torch.inference_mode():
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=greedy,
            return_dict_in_generate=True,
            output_logits=True,
        )
    best = torch.cat(output.logits).topk(2).values  # [tokens, 2]
    return output.sequences[0, ids.shape[1] :].tolist(), (best[:, 0] - best[:, 1]).tolist()


if __name__ == "__main__":
    main(sys.argv[1:])
