"""The Compose files as the real Compose binary resolves them, layer over layer.

Knows the layers, which of them go together, and where in a service its addresses are. No container engine is needed,
and none is asked.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import yaml

from edgeweave.settings import CloudSettings, CommonSettings, EdgeSettings, GatewaySettings, SchedulerSettings, load

Layers = tuple[str, ...]
Service = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "deploy" / "compose"
EXAMPLE = FOLDER / ".env.example"
CLOUD_TARGET = "cloud.example:50052"
TOOLS = {"jaeger": 16686, "prometheus": 9090, "grafana": 3000}
"""The tools and the ports of their pages."""

SETTINGS: dict[str, type[CommonSettings]] = {
    "gateway": GatewaySettings,
    "scheduler": SchedulerSettings,
    "edge": EdgeSettings,
    "cloud": CloudSettings,
}
_PLACES: tuple[Layers, ...] = ((), ("edge",), ("cloud",))
_EXTRAS = ("wan", "npu", "observability")
_SAID = {"edge": {"CLOUD_TARGET": CLOUD_TARGET}}
"""What the example leaves to be said, by layer."""


def _choices() -> Iterator[Layers]:
    extras = list(chain.from_iterable(combinations(_EXTRAS, num) for num in range(len(_EXTRAS) + 1)))
    yield from ((*place, *extra) for place in _PLACES for extra in extras)


CHOICES = tuple(_choices())
"""Every choice of layers: one host, the site or the cloud, and any of the others on top."""


@cache
def resolved(*layers: str) -> dict[str, Any]:
    """Return the model that Compose makes of `compose.yaml` and `layers`, in this order, with the example's values."""
    files = [FOLDER / "compose.yaml", *(FOLDER / f"compose.{layer}.yaml" for layer in layers)]
    words = [word for file in files for word in ("--file", str(file))]
    said = {name: value for layer in layers for name, value in _SAID.get(layer, {}).items()}
    model = subprocess.run(  # noqa: S603 - fixed words
        [compose_binary(), *words, "--env-file", str(EXAMPLE), "config", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], **said},
    )
    assert model.returncode == 0, model.stderr
    return dict(json.loads(model.stdout))


def compose_binary() -> str:
    """Return the program, which is installed beside the interpreter."""
    binary = shutil.which("docker-compose", path=str(Path(sys.executable).parent))
    assert binary is not None
    return binary


def services(*layers: str) -> dict[str, Service]:
    """Return what runs with `layers`, by name."""
    return dict(resolved(*layers)["services"])


def mesh_services(*layers: str) -> dict[str, Service]:
    """Return those that are gateway, scheduler, edge or cloud."""
    return {name: service for name, service in services(*layers).items() if name in SETTINGS}


def settings_of(name: str, service: Service) -> CommonSettings:
    """Return what a service of ours makes of its environment; InvalidSettingsError says what it would say."""
    return load(SETTINGS[name], [], service["environment"])


def dialled(service: Service) -> set[str]:
    """Return the addresses of ours that it is told to dial, HOST:PORT."""
    variables = ("EDGEWEAVE_GATEWAY__SCHEDULER", "EDGEWEAVE_SCHEDULER__EDGE", "EDGEWEAVE_SCHEDULER__CLOUD")
    environment = service.get("environment", {})
    return {environment[name] for name in variables if name in environment} | _flags(service, "--target=")


def ports_of(service: Service) -> set[str]:
    """Return the ports that it listens on for others."""
    environment = service.get("environment", {})
    ports = {value for name, value in environment.items() if name.endswith(("LISTEN", "GATEWAY__PORT"))}
    return {address.rpartition(":")[2] for address in ports | _flags(service, "--listen=")}


def scrape_targets() -> dict[str, str]:
    """Return the port that Prometheus asks, for each service."""
    config = yaml.safe_load((FOLDER.parent / "prometheus" / "prometheus.yaml").read_text(encoding="utf-8"))
    groups = [group for job in config["scrape_configs"] for group in job["static_configs"]]
    return dict(target.split(":") for group in groups for target in group["targets"])


def _flags(service: Service, flag: str) -> set[str]:
    return {word.removeprefix(flag) for word in service.get("command") or [] if word.startswith(flag)}
