"""The Compose file of one host has the shape of the boundary, and `.env` has everything that can be set.

No container engine runs here: the real Compose binary resolves the file.
"""

import re
import shutil
import subprocess
from pathlib import Path

from fakes.compose import EXAMPLE, FOLDER, SETTINGS, TOOLS, compose_binary, services

PREDEFINED = "COMPOSE_FILE"
"""What Compose itself reads from `.env`."""


def test_only_the_gateway_is_published_and_the_cloud_is_only_on_the_wide_area_network() -> None:
    """The shape of the deployment is the shape of the boundary."""
    mesh = services()
    assert [name for name, service in mesh.items() if service.get("ports")] == ["gateway"]
    assert mesh["gateway"]["ports"][0]["host_ip"] == "127.0.0.1"
    assert {name: sorted(service["networks"]) for name, service in mesh.items()} == {
        "gateway": ["site"],
        "scheduler": ["site", "wan"],
        "edge": ["site", "wan"],
        "cloud": ["wan"],
    }


def test_the_cloud_gets_nothing_of_a_client() -> None:
    """Keys of clients stay on the site."""
    keys = "EDGEWEAVE_GATEWAY__API_KEYS"
    assert {name for name, service in services().items() if keys in service["environment"]} == {"gateway"}


def test_the_example_sets_each_variable_of_the_files_and_no_other() -> None:
    """What can be set is seen in one place."""
    used = {name for file in FOLDER.glob("*.yaml") for name in re.findall(r"\$\{(\w+)", file.read_text())}
    assert set(re.findall(r"^(\w+)=", EXAMPLE.read_text(), re.MULTILINE)) == used | {PREDEFINED}


def test_a_default_in_a_file_is_what_the_example_says() -> None:
    """Who leaves a line out of `.env` gets what the example has there; an empty line there leaves it to the file."""
    example = dict(re.findall(r"^(\w+)=(.*)$", EXAMPLE.read_text(), re.MULTILINE))
    for file in FOLDER.glob("*.yaml"):
        for name, value in re.findall(r"\$\{(\w+):-([^}]*)\}", file.read_text()):
            assert value == example[name] or not example[name], f"{name} in {file.name}"


def test_the_layers_are_named_in_the_env_file(tmp_path: Path) -> None:
    """`docker compose up` alone starts what COMPOSE_FILE names, so that no command repeats the layers."""
    project = tmp_path / "compose"
    shutil.copytree(FOLDER, project, ignore=shutil.ignore_patterns("*.env", "tls", "model"))
    layers = f"{PREDEFINED}=compose.yaml:compose.wan.yaml:compose.observability.yaml"
    example = re.sub(f"^{PREDEFINED}=.*$", layers, EXAMPLE.read_text(), flags=re.MULTILINE)
    (project / ".env").write_text(example, encoding="utf-8")
    listed = subprocess.run(  # noqa: S603 - fixed words
        [compose_binary(), "config", "--services"], cwd=project, env={}, capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.split()) == {*SETTINGS, *TOOLS, "link"}
