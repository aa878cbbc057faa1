"""Tiny seeded models and what transformers says of them, built once and kept in the cache folder of the repository.

The name of a folder holds a digest of all that its content depends on: configuration, seed, prompts, versions. A folder
appears whole: it is written beside its place and renamed.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from models.architectures import config_of

_CACHE = Path(__file__).parents[2] / ".cache" / "tiny-models"
_SEED = 20
_PROMPT_LENGTHS = (19, 7, 12, 1, 9)
_NUM_OUTPUT_TOKENS = 10


@dataclass(frozen=True)
class Reference:
    """What `transformers.generate` answers greedily to one prompt; `margins` are its two best logits apart."""

    prompt: tuple[int, ...]
    output: tuple[int, ...]
    margins: tuple[float, ...]


def tiny_model(name: str) -> Path:
    """Return a folder with the tiny model of architecture `name`, in the layout of the hub."""
    return kept(f"{name}-{_digest(name)}", lambda folder: _build(name, folder))


def references(name: str) -> list[Reference]:
    """Return the reference answers of the tiny model of architecture `name`."""
    key = f"{name}-{_digest(name, _PROMPT_LENGTHS, _NUM_OUTPUT_TOKENS)}-answers"
    folder = kept(key, lambda folder: _answer(name, folder))
    stored = json.loads((folder / "answers.json").read_text())
    return [Reference(*(tuple(answer[field]) for field in ("prompt", "output", "margins"))) for answer in stored]


def _digest(name: str, *more: object) -> str:
    parts = (config_of(name), _SEED, torch.__version__, transformers.__version__, more)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def kept(key: str, build: Callable[[Path], None]) -> Path:
    """Return the folder `key` of the cache; `build` fills it if it is not there."""
    place = _CACHE / key
    if place.exists():
        return place
    _CACHE.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=_CACHE, prefix=f".{key}-"))
    try:
        build(beside)
        os.rename(beside, place)  # noqa: PTH104  Path.rename would say the same; this one fails if another was faster
    except OSError:
        if not place.exists():
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return place


def _build(name: str, folder: Path) -> None:
    config = transformers.AutoConfig.for_model(name, **config_of(name))
    torch.manual_seed(_SEED)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]  # untyped there
    with torch.no_grad():
        for tensor_name, tensor in model.named_parameters():
            spread(tensor_name, tensor, embedding_std=0.02 if name.startswith("gemma") else 0.2)
    model.save_pretrained(folder)


def spread(name: str, tensor: torch.Tensor, *, embedding_std: float) -> None:
    """Give `tensor` values under which each layer and each position counts, so that no answer repeats itself.

    Gemma scales its embeddings up, so they begin small; else a tied head would answer each token with itself.
    """
    if "embed" in name or "wte" in name or "wpe" in name:
        tensor.normal_(std=embedding_std)
    elif tensor.ndim > 1:
        tensor.normal_(std=1.6 * min(tensor.shape[-2:]) ** -0.5)
    else:
        tensor.add_(torch.empty_like(tensor).normal_(std=0.02 if name.endswith("bias") else 0.2))


def _answer(name: str, folder: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(
        tiny_model(name), dtype=torch.float32, attn_implementation="eager"
    )
    answers = [asdict(_generate(model, prompt)) for prompt in _prompts(model.config.vocab_size)]
    (folder / "answers.json").write_text(json.dumps(answers))


def _prompts(vocab_size: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(_SEED)
    return [torch.randint(3, vocab_size, (n,), generator=generator).tolist() for n in _PROMPT_LENGTHS]


def _generate(model: Any, prompt: list[int]) -> Reference:
    answer = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        max_new_tokens=_NUM_OUTPUT_TOKENS,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    best = torch.stack(answer.logits)[:, 0].topk(2).values  # [tokens, 2]
    output = answer.sequences[0, len(prompt) :].tolist()
    return Reference(tuple(prompt), tuple(output), tuple((best[:, 0] - best[:, 1]).tolist()))
