"""Which commands make up a mesh, and what is found before anything runs."""

import os
import socket
import sys
from pathlib import Path

import pytest

from edgeweave.cli.mesh_commands import mesh_commands
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.errors import InvalidRequestError, InvalidSettingsError, ModelNotFoundError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    return tmp_path


def _flag(command: list[str], name: str) -> str | None:
    return command[command.index(name) + 1] if name in command else None


def test_both_streams_to_the_cloud_cross_the_link(model: Path) -> None:
    """Scheduler and edge know the cloud by the address of the link, and only the link knows the cloud's own."""
    mesh = mesh_commands(MeshOptions(model=model, port=0), {})
    link = mesh.commands["link"]
    assert mesh.cloud is not None
    assert _flag(link, "--target") == mesh.cloud.listen
    assert mesh.scheduler.cloud == mesh.scheduler.edge_cloud_target == _flag(link, "--listen")
    assert mesh.cloud.listen not in " ".join(mesh.commands["scheduler"] + mesh.commands["edge"])
    assert (_flag(link, "--distance-km"), _flag(link, "--bandwidth-gbit")) == ("1000.0", "10.0")
    assert mesh.link_control == _flag(link, "--control")
    assert mesh.edge.link_gbit == mesh.cloud.link_gbit == 10.0
    assert list(mesh.commands) == ["cloud", "link", "edge", "scheduler", "gateway"]


def test_a_round_trip_is_two_delays(model: Path) -> None:
    """A given round trip takes the place of the distance."""
    link = mesh_commands(MeshOptions(model=model, port=0, rtt_ms=30), {}).commands["link"]
    assert (_flag(link, "--delay-ms"), _flag(link, "--distance-km")) == ("15.0", None)


def test_a_centralized_mesh_has_neither_cloud_nor_link(model: Path) -> None:
    """All layers are at the edge, and the scheduler is told so."""
    mesh = mesh_commands(MeshOptions(model=model, port=0, is_centralized=True), {})
    assert list(mesh.commands) == ["edge", "scheduler", "gateway"]
    assert (mesh.edge.split, mesh.scheduler.cloud, mesh.cloud) == ("none", None, None)
    assert (mesh.link_control, mesh.edge.link_gbit) == (None, None)


def test_flags_are_stronger_than_the_file_and_only_where_given(model: Path, tmp_path: Path) -> None:
    """What was not asked for is left to the settings file."""
    config = tmp_path / "site.yaml"
    config.write_text("scheduler: {plan: serial, max_steps: 2}\ncommon: {split: 2:1}\n", encoding="utf-8")
    mesh = mesh_commands(
        MeshOptions(model=model, port=0, config=config, plan="1p1d", extra_flags={"edge": ["--kv-bytes", "1MiB"]}), {}
    )
    assert (mesh.scheduler.plan, mesh.scheduler.max_steps) == ("1p1d", 2)
    assert (mesh.edge.split, mesh.edge.kv_bytes) == ("2:1", 1 << 20)


@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="needs the CPU cores 0 and 1")
def test_the_cloud_has_a_core_of_its_own(model: Path) -> None:
    """Pinned, what is far away does not share a core with what is here; in one place the engine is alone.

    On the core that is shared, what a step waits for goes first.
    """
    for is_centralized, alone in ((False, "cloud"), (True, "edge")):
        mesh = mesh_commands(MeshOptions(model=model, port=0, is_pinned=True, is_centralized=is_centralized), {})
        cores = {name: command[command.index("edgeweave.child") + 2] for name, command in mesh.commands.items()}
        assert {name for name, core in cores.items() if core == "1"} == {alone}
        assert set(cores.values()) == {"0", "1"}
        nicenesses = {name: command[command.index("edgeweave.child") + 3] for name, command in mesh.commands.items()}
        assert {name for name, niceness in nicenesses.items() if niceness != "0"} == {"scheduler", "gateway"}
        assert all(command[0] == sys.executable for command in mesh.commands.values())


def test_a_taken_port_is_found_before_anything_starts(model: Path) -> None:
    """The port that the user chose is tried first, and the error says which flag helps."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidSettingsError, match=rf"^gateway: 127\.0\.0\.1:{port}.*Address already.*--port$"):
            mesh_commands(MeshOptions(model=model, port=port), {})


def test_a_missing_model_is_found_before_anything_starts(tmp_path: Path) -> None:
    """A folder without a model is named."""
    with pytest.raises(ModelNotFoundError, match=r"nowhere: no config\.json"):
        mesh_commands(MeshOptions(model=tmp_path / "nowhere", port=0), {})


def test_one_mistake_is_one_line(model: Path) -> None:
    """A flag that several services get is complained of once; two flags are two lines."""
    with pytest.raises(InvalidSettingsError) as error:
        mesh_commands(MeshOptions(model=model, port=0, split="0:1", dtype="int8"), {})
    assert [line.partition(":")[0] for line in str(error.value).splitlines()] == [
        "edge.dtype (--dtype)",
        "edge.split (--split)",
    ]


def test_no_model_at_all_is_one_line() -> None:
    """It is not said once more for each service."""
    with pytest.raises(InvalidSettingsError, match=r"^no model was named; .* --model, .* --emulate, .* --config$"):
        mesh_commands(MeshOptions(port=0), {})


def test_an_emulated_mesh_has_engines_and_no_gateway() -> None:
    """A profile takes the place of the model, which the gateway would need for its text."""
    mesh = mesh_commands(MeshOptions(emulate="npu"), {})
    assert list(mesh.commands) == ["cloud", "link", "edge", "scheduler"]
    assert mesh.gateway is None
    assert mesh.cloud is not None
    assert (mesh.edge.emulate, mesh.cloud.emulate, mesh.edge.model) == ("npu", "npu", None)
    assert list(mesh_commands(MeshOptions(emulate="npu", is_centralized=True), {}).commands) == ["edge", "scheduler"]


def test_a_mesh_with_a_model_can_do_without_a_gateway(model: Path) -> None:
    """The SDK asks the scheduler; nobody takes the port of HTTP."""
    options = MeshOptions(model=model, with_gateway=False)
    assert list(mesh_commands(options, {}).commands) == ["cloud", "link", "edge", "scheduler"]
    assert options.services == ("cloud", "edge", "scheduler")


def test_what_cannot_be_emulated_is_found_before_anything_starts(model: Path, tmp_path: Path) -> None:
    """A profile that does not exist, and a model beside a profile, by flag or in the file."""
    with pytest.raises(InvalidRequestError, match="profile 'tpu' is neither a file nor one of npu"):
        mesh_commands(MeshOptions(emulate="tpu"), {})
    with pytest.raises(InvalidSettingsError, match=r"^--emulate npu: takes the place of a model"):
        MeshOptions(emulate="npu", model=model)
    config = tmp_path / "site.yaml"
    config.write_text(f"common: {{model: {model}}}\n", encoding="utf-8")
    with pytest.raises(InvalidSettingsError, match="emulate is set as well, and takes the place of a model"):
        mesh_commands(MeshOptions(emulate="npu", config=config), {})
