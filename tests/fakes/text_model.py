"""Tiny real tokenizers, and the files of a model folder around them."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SENTENCES = (
    "The capital of France is Paris, and the capital of Japan is Tokyo.",
    "Light needs about five microseconds for a kilometre of fibre.",
    "A bubble is the time in which an engine could run and does not.",
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MAX_POSITIONS = 512


def byte_level_tokenizer() -> Tokenizer:
    """Return a tokenizer that can spell every text in bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def byte_fallback_tokenizer() -> Tokenizer:
    """Return a tokenizer of the SentencePiece kind: words carry their space, other characters are bytes."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words = ["▁", "▁the", "▁capital", "▁of", "s", "a", "b", ",", "."]
    vocab = {piece: index for index, piece in enumerate([*pieces, *words])}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True, unk_token="<unk>"))  # noqa: S106 - a token of text
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def write_model_folder(
    folder: Path,
    *,
    tokenizer: Tokenizer | None = None,
    chat_template: str | None = CHATML,
    **tokenizer_config: Any,
) -> Path:
    """Write what a model folder says about text into `folder` and return it."""
    (tokenizer or byte_level_tokenizer()).save(str(folder / "tokenizer.json"))
    named = {
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    files = {
        "tokenizer_config.json": {**named, **tokenizer_config},
        "generation_config.json": {"eos_token_id": 0},
        "config.json": {"max_position_embeddings": MAX_POSITIONS, "vocab_size": 320},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    if chat_template is not None:
        (folder / "chat_template.jinja").write_text(chat_template, encoding="utf-8")
    return folder
