"""A tiny model with a tokenizer and a chat template, as the folder of a checkpoint has them: what a gateway serves.

Answers come from `transformers.generate` on the whole model, and are kept beside the models under a digest of the
prompt.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer

from fakes.text_model import CHATML, SENTENCES, SPECIAL_TOKENS, byte_level_tokenizer
from models.tiny import kept, spread

VOCAB_SIZE = 4096
NUM_LAYERS = 6
_MAX_POSITIONS = 4096
_SEED = 31
_SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": NUM_LAYERS,
}
_WIDE: dict[str, Any] = {
    "hidden_size": 1280,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "num_hidden_layers": 3,
}


def served_model() -> Path:
    """Return the folder of a tiny llama: 4 bytes a parameter, 128 bytes a token on the lanes."""
    return _served("tiny-chat", _SMALL)


def wide_model() -> Path:
    """Return the folder of a llama with little work and wide hidden states: 5120 bytes a token on the lanes."""
    return _served("wide-chat", _WIDE)


def answers_to(folder: Path, prompts: Sequence[Sequence[int]], *, num_tokens: int) -> list[tuple[int, ...]]:
    """Return the greedy answer of the whole model in `folder` to each prompt, `num_tokens` long."""
    digest = hashlib.sha256(repr(([tuple(prompt) for prompt in prompts], num_tokens)).encode()).hexdigest()[:16]
    place = kept(f"{folder.name}-{digest}-answers", lambda beside: _answer_all(folder, beside, prompts, num_tokens))
    return [tuple(answer) for answer in json.loads((place / "answers.json").read_text(encoding="ascii"))]


def greedy_answer(folder: Path, prompt: Sequence[int], *, num_tokens: int) -> list[int]:
    """Return the greedy answer of the whole model in `folder`, computed now."""
    answer: torch.Tensor = _whole_model(folder).generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        max_new_tokens=num_tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    tokens: list[int] = answer[0, len(prompt) :].tolist()
    return tokens


def _answer_all(folder: Path, beside: Path, prompts: Sequence[Sequence[int]], num_tokens: int) -> None:
    answers = [greedy_answer(folder, prompt, num_tokens=num_tokens) for prompt in prompts]
    (beside / "answers.json").write_text(json.dumps(answers), encoding="ascii")


@lru_cache(maxsize=2)
def _whole_model(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def _served(name: str, shape: dict[str, Any]) -> Path:
    text = (SENTENCES, SPECIAL_TOKENS, CHATML)
    parts = (shape, _SEED, VOCAB_SIZE, _MAX_POSITIONS, text, torch.__version__, transformers.__version__)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return kept(f"{name}-{digest}", lambda folder: _build(folder, shape))


def _build(folder: Path, shape: dict[str, Any]) -> None:
    config = transformers.LlamaConfig(
        vocab_size=VOCAB_SIZE,
        max_position_embeddings=_MAX_POSITIONS,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
        **shape,
    )
    torch.manual_seed(_SEED)
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for tensor_name, tensor in model.named_parameters():
            spread(tensor_name, tensor, embedding_std=0.2)
    model.save_pretrained(folder)
    _tokenizer().save(str(folder / "tokenizer.json"))
    named = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(CHATML, encoding="utf-8")


def _tokenizer() -> Tokenizer:
    """Return a tokenizer that spells every text in bytes, and has a word for each other id."""
    tokenizer = byte_level_tokenizer()
    tokenizer.add_tokens([f" w{token_id}" for token_id in range(tokenizer.get_vocab_size(), VOCAB_SIZE)])
    return tokenizer
