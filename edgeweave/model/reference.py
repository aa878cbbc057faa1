"""What the whole model says in one place: `transformers` and its own `generate`, to compare with.

Reads one JSON object on standard input: `prompts`, lists of token ids; `max_tokens`; `stop_token_ids`. Writes one on
standard output: `outputs`, the tokens of each prompt up to and with the stop token. Greedy, float32, one thread.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from edgeweave.errors import ModelNotFoundError


def main(argv: Sequence[str]) -> None:
    """Answer the request on standard input.

    Raises:
        ModelNotFoundError: there is no model in the folder.
    """
    parser = argparse.ArgumentParser(prog="python -m edgeweave.model.reference", description=main.__doc__)
    parser.add_argument("--model", type=Path, required=True, help="model folder")
    folder = parser.parse_args(argv).model
    if not (folder / "config.json").is_file():
        raise ModelNotFoundError(f"model folder {folder}: no config.json there; name the folder of a model")
    request = json.load(sys.stdin)
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    outputs = [
        generate_reference(model, prompt, max_tokens=request["max_tokens"], stop_token_ids=request["stop_token_ids"])
        for prompt in request["prompts"]
    ]
    json.dump({"outputs": outputs}, sys.stdout)


def generate_reference(
    model: Any, prompt: Sequence[int], *, max_tokens: int, stop_token_ids: Sequence[int]
) -> list[int]:
    """Return the greedy output for one prompt of token ids, without what the model's own defaults would add to it."""
    greedy = GenerationConfig(  # type: ignore[no-untyped-call]  # transformers types only its fields
        do_sample=False,
        max_new_tokens=max_tokens,
        eos_token_id=list(stop_token_ids) or None,
        pad_token_id=0,
        repetition_penalty=1.0,
    )
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # the same
    ids = torch.tensor([list(prompt)])  # [1, tokens]
    with torch.inference_mode():
        output = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=greedy)
    tokens: list[int] = output[0, ids.shape[1] :].tolist()
    return tokens


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ModelNotFoundError as error:
        sys.exit(str(error))
