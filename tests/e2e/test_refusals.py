"""What a user got wrong is one line on standard error and exit code 2, and nothing has started."""

import json
import logging
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import structlog

from edgeweave_cloud.__main__ import main as run_cloud

EDGEWEAVE = (sys.executable, "-m", "edgeweave.cli")


def refusals_of(*commands: Sequence[str]) -> list[str]:
    """Run `edgeweave` with the words of each command, side by side, and return the line that each wrote."""
    running = [
        subprocess.Popen([*EDGEWEAVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
        for words in commands
    ]
    try:
        written = [child.communicate(timeout=40) for child in running]
    finally:
        for child in running:
            child.kill()
    assert [child.returncode for child in running] == [2] * len(running), written
    assert [output for output, _ in written] == [""] * len(running)
    return [only_line(errors) for _, errors in written]


def only_line(text: str) -> str:
    assert "Traceback" not in text
    assert text.count("\n") == 1, text
    return text.rstrip("\n")


@pytest.fixture(autouse=True)
def own_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine that runs in this process sets up its logs; afterwards they are as before."""
    root = logging.getLogger()
    level = root.level
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    yield
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def uncut(model: Path, tmp_path: Path) -> Path:
    """The folder of the tiny model, for a configuration of another kind."""
    folder = tmp_path / "uncut"
    shutil.copytree(model, folder)
    return folder


def test_mistakes_of_up(model: Path, tmp_path: Path) -> None:
    """A port in use, a folder that is not there, an unknown key: told before anything starts."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("scheduler: {max_bath_size: 3}\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        in_use, missing, unknown = refusals_of(
            ("up", "--model", str(model), "--port", port),
            ("up", "--model", str(tmp_path / "nowhere"), "--port", "0"),
            ("up", "--model", str(model), "--port", "0", "--config", str(settings)),
        )
    assert f"127.0.0.1:{port}" in in_use
    assert "in use" in in_use
    assert f"{tmp_path / 'nowhere'}" in missing
    assert "max_bath_size" in unknown
    assert "max_batch_size" in unknown


def test_ports_of_services_in_use(model: Path) -> None:
    """Neither gRPC nor HTTP writes anything besides the line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
        scheduler, gateway = refusals_of(
            ("serve", "scheduler", "--listen", address, "--cloud", "none"),
            ("serve", "gateway", "--port", address.rpartition(":")[2], "--model", str(model)),
        )
    assert scheduler.startswith(f"edgeweave scheduler: cannot listen on {address}: the port is in use")
    assert gateway.startswith(f"edgeweave gateway: cannot serve HTTP on {address}: Address already in use")


def test_a_device_that_is_not_there(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, with what to do."""
    assert run_cloud(["--model", str(model), "--device", "cuda:7"]) == 2
    assert "device cuda:7 is not there" in only_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "mamba", "architectures": ["MambaForCausalLM"]}, "mamba"),
        ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, "encoder-decoder"),
        ({"model_type": "bert", "architectures": ["BertModel"]}, "bert"),
        ({"model_type": "no-such-kind"}, "no-such-kind"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_model_that_cannot_be_cut(
    uncut: Path, change: dict[str, object], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused with the reason, by the engine itself."""
    config = json.loads((uncut / "config.json").read_text(encoding="utf-8"))
    (uncut / "config.json").write_text(json.dumps({**config, **change}), encoding="utf-8")
    assert run_cloud(["--model", str(uncut)]) == 2
    assert reason in only_line(capsys.readouterr().err).lower()


@pytest.mark.parametrize("split", ["3:3", "5:1", "9:9"])
def test_a_split_that_leaves_no_body(model: Path, split: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Six layers have no place for it; the line says how many there may be."""
    assert run_cloud(["--model", str(model), "--split", split]) == 2
    line = only_line(capsys.readouterr().err)
    assert f"split {split} leaves the cloud no layer of a model of 6" in line
    assert "at most 5" in line
