"""What the files of a model folder say about text.

Knows the file names and keys that checkpoints use: `tokenizer_config.json`, `special_tokens_map.json`,
`generation_config.json`, `config.json`, `chat_template.jinja`. Does not know how to tokenize or render.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeweave.errors import ModelError, ModelNotFoundError

SPECIAL_TOKEN_NAMES = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
_POSITION_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")


@dataclass(frozen=True, slots=True)
class TextConfig:
    """Facts about the text of one model.

    `max_positions` is the most tokens that one sequence may have, prompt and output together.
    """

    tokenizer_path: Path
    special_tokens: Mapping[str, str]
    chat_template: str | None
    eos_token_ids: frozenset[int]
    max_positions: int | None
    vocab_size: int | None


def read_text_config(folder: Path) -> TextConfig:
    """Read what `folder` says about text.

    Raises:
        ModelNotFoundError: the folder or its `tokenizer.json` is missing.
        ModelError: a file is not JSON or holds a value that cannot be used.
    """
    _require_files(folder)
    tokenizer = _read_json(folder / "tokenizer_config.json")
    model = _text_part(_read_json(folder / "config.json"))
    generation = _read_json(folder / "generation_config.json")
    return TextConfig(
        tokenizer_path=folder / "tokenizer.json",
        special_tokens=_special_tokens(_read_json(folder / "special_tokens_map.json"), tokenizer),
        chat_template=_chat_template(folder, tokenizer),
        eos_token_ids=frozenset(_eos_token_ids(folder, generation, model)),
        max_positions=next((model[key] for key in _POSITION_KEYS if isinstance(model.get(key), int)), None),
        vocab_size=model.get("vocab_size"),
    )


def _require_files(folder: Path) -> None:
    if not folder.is_dir():
        raise ModelNotFoundError(f"model folder {folder} does not exist; give the folder of a checkpoint")
    for name in ("tokenizer.json", "config.json"):
        if not (folder / name).is_file():
            raise ModelNotFoundError(
                f"model folder {folder} has no {name}; save the model and its fast tokenizer into it"
            )


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not JSON: {error}; fetch the model again") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds no JSON object; fetch the model again")
    return content


def _text_part(config: dict[str, Any]) -> dict[str, Any]:
    """Return the part about text: models with more than text nest it, and keep some keys outside."""
    return {**config, **(config.get("text_config") or {})}


def _special_tokens(*sources: Mapping[str, Any]) -> dict[str, str]:
    """Return the named special tokens; a later source wins."""
    tokens = {}
    for name in SPECIAL_TOKEN_NAMES:
        for source in sources:
            value = source.get(name)
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                tokens[name] = text
    return tokens


def _chat_template(folder: Path, tokenizer: Mapping[str, Any]) -> str | None:
    """Return the template: its own file first, then the key, which may hold several by name."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = tokenizer.get("chat_template")
    if isinstance(template, list):
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    return template if isinstance(template, str) else None


def _eos_token_ids(folder: Path, *sources: Mapping[str, Any]) -> Iterator[int]:
    """Yield the ids that end an output by the first source that names any."""
    named = next((s["eos_token_id"] for s in sources if s.get("eos_token_id") is not None), ())
    for token_id in (named,) if isinstance(named, int) else named:
        if not isinstance(token_id, int):
            raise ModelError(f"eos_token_id of {folder} is {named!r}; it must be an id or a list of ids")
        yield token_id
