"""Starting, ending and losing the processes of a mesh, with stand-ins for the services."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeweave.cli.mesh import Mesh
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.errors import InvalidSettingsError, UnavailableError
from fakes.process_table import children_of, is_alive, until_gone
from fakes.stand_ins.mesh import MODULES

TESTS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    return tmp_path


def _options(model: Path, *, start_deadline_s: float = 30.0, log_dir: Path | None = None) -> MeshOptions:
    return MeshOptions(
        model=model,
        port=0,
        rtt_ms=1,
        modules=MODULES,
        start_deadline_s=start_deadline_s,
        stop_deadline_s=1.0,
        log_dir=log_dir,
    )


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_mesh_starts_serves_and_leaves_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts are told ready, the URL answers, output is logged; afterwards no process, port or other file is left.

    A service that does not hear SIGTERM is killed when the grace is over.
    """
    monkeypatch.setenv("STAND_IN_DEAF", "cloud")
    told = []
    async with Mesh.start(_options(model, log_dir=model / "logs"), tell=lambda name, _: told.append(name)) as mesh:
        port = int(mesh.url.rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port)).close()
        processes = dict(mesh.processes)
        assert all(is_alive(process.pid) for process in processes.values())
    assert sorted(told) == sorted(processes) == ["cloud", "edge", "gateway", "link", "scheduler"]
    assert not any(is_alive(process.pid) for process in processes.values())
    assert processes["cloud"].ending == "cloud was ended by SIGKILL"
    assert processes["edge"].ending == "edge ended with exit code 0"
    socket.create_server(("127.0.0.1", port)).close()
    assert (model / "logs" / "edge.log").read_text(encoding="utf-8").splitlines() == ["edge starts", "edge ends"]
    assert _names(model) == ["config.json", "logs"]


async def test_a_part_that_ends_is_reported_and_can_be_started_again(model: Path) -> None:
    """A killed process is named with the signal; the mesh goes on without it, and it can come back."""
    async with Mesh.start(_options(model)) as mesh:
        cloud = mesh.processes["cloud"]
        end = asyncio.create_task(mesh.first_end())
        os.kill(cloud.pid, signal.SIGKILL)
        assert await end is cloud
        assert cloud.ending == "cloud was ended by SIGKILL"
        assert mesh.processes["edge"].is_running
        await cloud.start()
        assert await cloud.first_line() == "cloud starts"


async def test_a_part_that_fails_to_start_is_shown_with_its_last_lines(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the deadline when a service has ended, and its own words are shown."""
    monkeypatch.setenv("STAND_IN_BROKEN", "edge")
    with pytest.raises(UnavailableError, match=r"^edge ended with exit code 1 .*\n  edge starts\n.*flux is decoupled"):
        async with Mesh.start(_options(model)):
            pytest.fail("there is no mesh")


async def test_a_part_that_finds_the_user_mistaken_speaks_for_the_mesh(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that an engine cannot cut, say, is a mistake of the user: the engine's own line and nothing else."""
    monkeypatch.setenv("STAND_IN_REFUSING", "edge")
    with pytest.raises(InvalidSettingsError, match=r"\Aedge: a flux of 2 is not legal; give 1\Z"):
        async with Mesh.start(_options(model)):
            pytest.fail("there is no mesh")


async def test_a_part_that_is_late_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the deadline passes, the first part that others wait for is shown."""
    monkeypatch.setenv("STAND_IN_LATE", "cloud")
    with pytest.raises(UnavailableError, match=r"^not ready after 2 s: cloud, .*; the last lines of cloud:\n"):
        async with Mesh.start(_options(model, start_deadline_s=2)):
            pytest.fail("there is no mesh")


class Up:
    """`edgeweave up` with stand-ins, as a process of its own."""

    def __init__(self, model: Path) -> None:
        self.process = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, "-m", "fakes.stand_ins.up", str(model)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )

    def read_until(self, part: str) -> list[str]:
        lines = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.append(line.rstrip())
            if part in line:
                return lines
        raise AssertionError(f"no {part} in {lines}")


@pytest.fixture
def up(model: Path) -> Iterator[Up]:
    up = Up(model)
    yield up
    up.process.kill()
    up.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_ends_well_on_a_signal(up: Up, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM stop the whole mesh, and that is no failure."""
    lines = up.read_until("serves after")
    named = ["cloud", "edge", "gRPC", "gateway", "link", "scheduler", "timeline"]
    assert sorted(line.split()[0] for line in lines[:-1]) == named
    children = children_of(up.process.pid)
    assert len(children) == 5
    up.process.send_signal(number)
    output, _ = up.process.communicate(timeout=20)
    assert (up.process.returncode, output.strip()) == (0, "stopped")
    until_gone(children)


def test_up_ends_with_a_part_of_it(up: Up) -> None:
    """When a process dies later, `up` says which, stops the rest and fails."""
    up.read_until("serves after")
    children = children_of(up.process.pid)
    os.kill(children[0], signal.SIGKILL)
    output, _ = up.process.communicate(timeout=20)
    assert up.process.returncode == 1
    assert "cloud was ended by SIGKILL; the rest is stopped. Its last lines:\ncloud     cloud starts\n" in output
    until_gone(children)


def test_no_orphan_outlives_a_killed_up(up: Up) -> None:
    """Even if `up` itself is killed without a chance to stop anything, nothing is left."""
    up.read_until("serves after")
    children = children_of(up.process.pid)
    assert len(children) == 5
    up.process.kill()
    until_gone(children)
