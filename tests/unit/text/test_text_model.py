"""The text side of a model folder: as transformers reads it, without transformers."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

from edgeweave.errors import InvalidRequestError, ModelError, ModelNotFoundError
from edgeweave.text import TextModel
from fakes.text_model import CHATML, MAX_POSITIONS, byte_level_tokenizer, write_model_folder

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "The capital of France?  "},
    {"role": "assistant", "content": "Paris."},
    {"role": "user", "content": "And <b>Japan</b> & 'Ünï'?"},
]
TEMPLATES = {
    "chatml": CHATML,
    "bos and strip": (
        "{{ bos_token }}{% for m in messages %}\n"
        "    {% if m.role == 'system' %}\n"
        "        [S]{{ m.content | trim }}[/S]\n"
        "    {%- else -%}\n"
        "        [{{ m['role'] }}] {{ m['content'] }}{{ eos_token }}\n"
        "    {%- endif %}\n"
        "{% endfor %}\n"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    ),
    "json and loop controls": (
        "{%- set ns = namespace(count=0) -%}"
        "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
        "{% set ns.count = ns.count + 1 %}{{ m | tojson }}{{ m | tojson(indent=2) }}"
        "{% if ns.count == 2 %}{% break %}{% endif %}{% endfor %}{{ ns.count }}"
        "{% if tools is not none %}tools{% endif %}"
    ),
    "generation blocks": (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{% set x = 1 %}{{ m.content }}"
        "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{{ x is defined }}{% endfor %}"
    ),
    "missing keys": "{% for m in messages %}{{ m.name }}{{ 'name' in m }}{{ m.content }}{% endfor %}",
}


def with_bos() -> Tokenizer:
    """Return a tokenizer that puts a first token before each text."""
    tokenizer = byte_level_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    return tokenizer


@pytest.mark.parametrize("name", TEMPLATES)
def test_chat_equals_transformers(tmp_path: Path, name: str) -> None:
    """A template renders, and a conversation is encoded, as `apply_chat_template` does it."""
    folder = write_model_folder(tmp_path, chat_template=TEMPLATES[name])
    reference = PreTrainedTokenizerFast.from_pretrained(folder)
    messages: list[dict[str, Any]] = [{**message, "name": None} for message in CHAT]
    model = TextModel.load(folder)
    assert model.chat_template is not None
    text = reference.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = reference.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert model.chat_template.render(messages) == text
    assert list(model.encode_chat(messages)) == ids


@pytest.mark.parametrize(
    "config",
    [{}, {"add_bos_token": True}, {"add_bos_token": True, "add_eos_token": True}, {"add_bos_token": False}],
)
def test_special_tokens_of_completions(tmp_path: Path, config: dict[str, Any]) -> None:
    """A plain text gets the special tokens of `tokenizer.json`, whatever else the folder says, as there."""
    folder = write_model_folder(tmp_path, tokenizer=with_bos(), **config)
    reference = PreTrainedTokenizerFast.from_pretrained(folder)
    text = "The capital of France"
    assert list(TextModel.load(folder).encode(text)) == reference(text)["input_ids"]


def test_chat_has_one_bos(tmp_path: Path) -> None:
    """A template that writes the first token itself gets no second one from the tokenizer."""
    folder = write_model_folder(tmp_path, tokenizer=with_bos(), chat_template="{{ bos_token }}hello")
    model = TextModel.load(folder)
    assert model.encode("hello")[0] == 1
    assert model.encode_chat(CHAT) == model.encode("hello")


def test_facts_of_the_folder(tmp_path: Path) -> None:
    """Ids that end an output come from generation config and tokenizer, limits from the model's config."""
    model = TextModel.load(write_model_folder(tmp_path))
    assert model.stop_token_ids == {0, 2}
    assert (model.max_positions, model.vocab_size) == (MAX_POSITIONS, 320)


def test_nested_text_config(tmp_path: Path) -> None:
    """A model with more than text keeps the facts about text in a part of its config."""
    folder = write_model_folder(tmp_path)
    (folder / "generation_config.json").unlink()
    nested = {"text_config": {"max_position_embeddings": 77, "vocab_size": 99}, "eos_token_id": [5, 6]}
    (folder / "config.json").write_text(json.dumps(nested), encoding="utf-8")
    model = TextModel.load(folder)
    assert (model.max_positions, model.vocab_size) == (77, 99)
    assert model.stop_token_ids == {2, 5, 6}


def test_truncation_of_the_file_is_not_used(tmp_path: Path) -> None:
    """What training left in the tokenizer's file never cuts or fills up a prompt."""
    tokenizer = byte_level_tokenizer()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=100)
    model = TextModel.load(write_model_folder(tmp_path, tokenizer=tokenizer))
    assert model.decode(model.encode("The capital of France")) == "The capital of France"
    assert len(model.encode("a")) == 1


def test_template_in_the_tokenizer_config(tmp_path: Path) -> None:
    """Older folders keep the template, or several by name, beside the special tokens."""
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    for template in ("plain", named):
        folder = write_model_folder(tmp_path, chat_template=None)
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}))
        model = TextModel.load(folder)
        assert model.chat_template is not None
        assert model.chat_template.render(CHAT) == "plain"


def test_date_of_a_template(tmp_path: Path) -> None:
    """A template that prints the date asks the clock that was passed in."""
    folder = write_model_folder(tmp_path, chat_template="{{ strftime_now('%d %B %Y') }}")
    model = TextModel.load(folder, now=lambda: datetime(2031, 2, 3, tzinfo=UTC))
    assert model.chat_template is not None
    assert model.chat_template.render(CHAT) == "03 February 2031"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('roles must\nalternate') }}", "roles must alternate"),
        ("{{ messages[0].content + 1 }}", "refuses these messages"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe|not safely callable"),
    ],
)
def test_refused_messages(tmp_path: Path, template: str, reason: str) -> None:
    """What a template cannot or must not do is the error of the request, in one line."""
    model = TextModel.load(write_model_folder(tmp_path, chat_template=template))
    with pytest.raises(InvalidRequestError, match=reason) as caught:
        model.encode_chat(CHAT)
    assert "\n" not in str(caught.value)


def test_no_template(tmp_path: Path) -> None:
    """A base model has no template: chat is refused, with what to do instead."""
    model = TextModel.load(write_model_folder(tmp_path, chat_template=None))
    with pytest.raises(InvalidRequestError, match="no chat template; ask for a plain completion"):
        model.encode_chat(CHAT)


def test_missing_files(tmp_path: Path) -> None:
    """A missing folder and a missing file are named."""
    with pytest.raises(ModelNotFoundError, match=r"nowhere does not exist"):
        TextModel.load(tmp_path / "nowhere")
    folder = write_model_folder(tmp_path)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelNotFoundError, match=r"has no tokenizer\.json"):
        TextModel.load(folder)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("config.json", "{", "is not JSON"),
        ("config.json", "[]", "holds no JSON object"),
        ("generation_config.json", '{"eos_token_id": ["x"]}', "must be an id"),
        ("tokenizer.json", "{}", "cannot be read"),
        ("chat_template.jinja", "{% if %}", "chat template of the model cannot be read"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: str, reason: str) -> None:
    """A file that cannot be used is an error of the model that names the file."""
    folder = write_model_folder(tmp_path)
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=reason):
        TextModel.load(folder)


def test_named_special_tokens_have_no_text(tmp_path: Path) -> None:
    """A token that the folder names as special is left out of the text, even if its file does not mark it."""
    tokenizer = byte_level_tokenizer()
    tokenizer.add_tokens(["<stop>"])
    model = TextModel.load(write_model_folder(tmp_path, tokenizer=tokenizer, eos_token="<stop>"))  # noqa: S106 - of text
    assert model.decode(model.encode("Paris<stop>")) == "Paris"
