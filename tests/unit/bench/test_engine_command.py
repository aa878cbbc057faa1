"""The command line of the contest."""

from pathlib import Path

import pytest

from contest.cases import Lengths
from contest.command import QUICK_LENGTHS, parse
from contest.engines import Engine


def test_without_options_everything_is_measured() -> None:
    wanted = parse([])
    assert wanted.models == ("llama51m", "embedded")
    assert [wanted.batches_of(model) for model in wanted.models] == [(1, 4, 8, 16), (1, 8)]
    assert wanted.engines == tuple(Engine)
    assert (wanted.num_rounds, wanted.lengths) == (5, Lengths(128, 64, 1024))
    assert (wanted.json_file, wanted.out, wanted.vllm_python) == (None, None, None)


def test_engines_keep_their_order_whatever_the_order_of_words() -> None:
    assert parse(["--engines", "generate", "ours"]).engines == (Engine.OURS, Engine.GENERATE)


def test_a_try_is_short_and_may_be_made_longer() -> None:
    wanted = parse(["--quick", "--rounds", "3", "--decoded-tokens", "16"])
    assert (wanted.num_rounds, wanted.batches_of("embedded")) == (3, (1, 8))
    assert wanted.lengths == Lengths(QUICK_LENGTHS.prompt_tokens, 16, QUICK_LENGTHS.prefill_tokens)


def test_the_command_is_shown_without_files_of_this_machine() -> None:
    words = ["--json", "/a/b.json", "--models", "llama51m", "--out=/c", "--vllm-python", "/d", "--rounds", "7"]
    wanted = parse([*words, "--cache", "/e"])
    assert wanted.shown == "bench/engine.py --models llama51m --rounds 7"
    assert (wanted.json_file, wanted.out, wanted.cache) == (Path("/a/b.json"), Path("/c"), Path("/e"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engines", "llama.cpp"], "invalid choice: 'llama.cpp'"),
        (["--batches", "0"], "0 is too few; give at least 1"),
        (["--core", "100000"], "--core 100000: this process may use ["),
    ],
)
def test_what_is_wrong_is_said(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(words)
    assert message in capsys.readouterr().err
