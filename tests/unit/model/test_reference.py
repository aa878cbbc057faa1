"""The whole model in one process, as the demo asks it."""

import io
import json
import sys
from pathlib import Path

import pytest

from edgeweave.errors import ModelNotFoundError
from edgeweave.model import reference
from models.tiny import references, tiny_model


def test_the_reference_says_what_generate_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each prompt gets its own greedy output; a stop token ends it and belongs to it."""
    answers = references("llama")[:3]
    stop = answers[0].output[2]
    request = {"prompts": [answer.prompt for answer in answers], "max_tokens": 6, "stop_token_ids": [stop]}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request)))
    reference.main(["--model", str(tiny_model("llama"))])
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    for output, answer in zip(outputs, answers, strict=True):
        expected = answer.output[:6]
        assert tuple(output) == (expected[: expected.index(stop) + 1] if stop in expected else expected)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    """What is not a model folder is refused before anything is loaded."""
    with pytest.raises(ModelNotFoundError, match=r"no config\.json"):
        reference.main(["--model", str(tmp_path)])
