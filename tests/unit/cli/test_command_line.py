"""Words, flags and mistakes of the `edgeweave` command."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgeweave import __version__
from edgeweave.cli import run
from edgeweave.cli import serve as serve_module


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`version` prints the version and ends well."""
    assert run(["version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ([], "Missing command"),
        (["nope"], "No such command 'nope'"),
        (["serve", "nope"], "No such command 'nope'"),
        (["up"], "no model was named"),
        (["up", "--model", str(Path(__file__).parent), "--port", "0", "--split", "0:1"], "edge.split (--split)"),
        (["up", "--nope"], "No such option: --nope"),
        (["up", "--port", "70000"], "less than or equal to 65535"),
        (["up", "--split", "1:1", "--centralized"], "leave out --split or --centralized"),
        (["up", "--model", "no-such-model", "--port", "0"], "model folder no-such-model: no config.json"),
        (["link"], "--listen, --target"),
        (["link", "--listen", "127.0.0.1:0", "--target", "x", "--delay-ms", "1"], "HOST:PORT"),
        (["link", "--listen", "127.0.0.1:0", "--target", "127.0.0.1:1", "--delay-ms", "-1"], "at least 0"),
        (["link", "--listen", "127.0.0.1:0", "--target", "127.0.0.1:1", "--delay-ms", "nan"], "finite numbers"),
        (["link", "--listen", "203.0.113.1:1", "--target", "127.0.0.1:1", "--delay-ms", "1"], "choose another"),
    ],
)
def test_a_mistake_is_one_line(argv: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What the user got wrong is one line on standard error, with exit code 2."""
    assert run(argv) == 2
    captured = capsys.readouterr()
    assert part in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_all_wrong_settings_of_a_mesh_are_told_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`up` checks what every service would find, before it starts any; each mistake is told once."""
    config = tmp_path / "site.yaml"
    config.write_text("common: {model: m}\nscheduler: {plan: 3p}\ncloud: {device: tpu}\n", encoding="utf-8")
    assert run(["up", "--config", str(config), "--split", "0:1"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["scheduler.plan", "cloud.device", "edge.split"]


def test_a_service_without_its_packages_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An engine that is started where torch is not installed says what to install."""
    monkeypatch.setattr(serve_module, "find_spec", lambda name: None if name == "torch" else object())
    assert run(["serve", "cloud"]) == 2
    assert capsys.readouterr().err == ("cloud: not installed: torch; run: pip install 'edgeweave[engine]'\n")


def test_the_command_imports_no_framework_and_no_service() -> None:
    """`edgeweave` works where neither torch nor the gateway's packages are installed."""
    program = "import sys, edgeweave.cli; print([name for name in sys.modules])"
    loaded = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    for name in ("torch", "transformers", "numpy", "fastapi", "tokenizers", "httpx"):
        assert f"'{name}'" not in loaded
    assert "edgeweave_" not in loaded
