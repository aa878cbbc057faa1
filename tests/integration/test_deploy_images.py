"""The images are what their Dockerfiles promise: small, without root, and in accord with the Compose file.

No container engine runs here: a Dockerfile is read as it is written.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from fakes.compose import SETTINGS, services
from fakes.image import ROOT, dockerfile_of, image_of


@pytest.mark.parametrize("service", SETTINGS)
def test_each_image_runs_its_service_and_asks_for_its_health(service: str) -> None:
    """Entry, health check and port are those of the service."""
    image = image_of(service)
    assert image.entry == ["python", "-m", f"edgeweave_{service}"]
    assert image.health_check == ["python", "-m", "edgeweave.rpc.probe", service]
    listen = environment(service).get(f"EDGEWEAVE_{service.upper()}__LISTEN", ":8000")
    assert listen.rpartition(":")[2] == image.port


@pytest.mark.parametrize("service", SETTINGS)
def test_each_image_is_built_in_two_stages_and_runs_without_root(service: str) -> None:
    """Compilers and caches stay behind, and a number is a user that nobody has to look up."""
    image = image_of(service)
    assert len(image.stages) == 2
    assert "pip install" in image.stages[0]
    assert "pip install" not in image.stages[1]
    assert int(image.user) > 0
    assert services()[service]["read_only"]
    assert services()[service]["cap_drop"] == ["ALL"]


@pytest.mark.parametrize(
    ("service", "has_torch"), [("gateway", False), ("scheduler", False), ("edge", True), ("cloud", True)]
)
def test_only_engines_carry_torch(service: str, *, has_torch: bool) -> None:
    """Nothing that a site service installs, however far away, depends on a framework."""
    stage = image_of(service).stages[0]
    (wanted,) = re.findall(r'pip install -c constraints.txt "\.(?:\[(.+)\])?"', stage)
    extra = wanted.replace("${EXTRA}", "".join(re.findall(r"^ARG EXTRA=(\w+)$", stage, re.MULTILINE)))
    assert ("torch" in set(_installed("edgeweave", {extra}, seen=set()))) is has_torch


@pytest.mark.parametrize("service", SETTINGS)
def test_each_dockerfile_is_well_written(service: str) -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert linter is not None
    found = subprocess.run(  # noqa: S603 - fixed words
        [linter, str(dockerfile_of(service))], capture_output=True, text=True, check=False
    )
    assert found.stdout == ""


def environment(service: str) -> dict[str, Any]:
    return dict(services()[service]["environment"])


def _installed(package: str, extras: set[str], *, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yield what pip would install with `package`, its own name first."""
    yield package
    for requirement in _requirements(package, extras):
        wanted = {(requirement.name, extra) for extra in ("", *requirement.extras)}
        if not wanted <= seen:
            seen |= wanted
            yield from _installed(requirement.name, requirement.extras, seen=seen)


def _requirements(package: str, extras: set[str]) -> Iterator[Requirement]:
    """Yield what a package asks for, ours by its project file, which is newer than what is installed."""
    if package == "edgeweave":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        yield from map(Requirement, project["dependencies"])
        for extra in extras - {""}:
            yield from map(Requirement, project["optional-dependencies"][extra])
        return
    try:
        written = requires(package) or []
    except PackageNotFoundError:  # for another platform
        return
    for requirement in map(Requirement, written):
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield requirement
