"""What the Compose file gives each container is what the service in it takes.

No container engine runs here: the real Compose binary resolves the file, and the settings of each service read the
environment that it would get.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgeweave.settings import CloudSettings, CommonSettings, EdgeSettings, GatewaySettings, SchedulerSettings, load

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose" / "compose.yaml"
EXAMPLE = ROOT / "deploy" / "compose" / ".env.example"
SETTINGS: dict[str, type[CommonSettings]] = {
    "gateway": GatewaySettings,
    "scheduler": SchedulerSettings,
    "edge": EdgeSettings,
    "cloud": CloudSettings,
}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """Return the services as Compose resolves them with the example's values."""
    binary = shutil.which("docker-compose", path=str(Path(sys.executable).parent))
    assert binary is not None
    command = [binary, "--file", str(COMPOSE), "--env-file", str(EXAMPLE), "config", "--format", "json"]
    resolved = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - fixed words
    return dict(json.loads(resolved.stdout)["services"])


@pytest.mark.parametrize("service", SETTINGS)
def test_each_service_takes_its_environment(services: dict[str, Any], service: str) -> None:
    """A variable that is misspelt, or has an illegal value, would stop the container."""
    assert load(SETTINGS[service], [], services[service]["environment"]).section == service


def test_addresses_fit_together(services: dict[str, Any]) -> None:
    """Who dials names the service and the port that the other listens on."""
    environment = {name: service["environment"] for name, service in services.items()}
    ports = {
        name: environment[name].get(f"EDGEWEAVE_{name.upper()}__LISTEN", "").partition(":")[2] for name in services
    }
    assert environment["gateway"]["EDGEWEAVE_GATEWAY__SCHEDULER"] == f"scheduler:{ports['scheduler']}"
    assert environment["scheduler"]["EDGEWEAVE_SCHEDULER__EDGE"] == f"edge:{ports['edge']}"
    assert environment["scheduler"]["EDGEWEAVE_SCHEDULER__CLOUD"] == f"cloud:{ports['cloud']}"


def test_only_the_gateway_is_published_and_the_cloud_is_only_on_the_wide_area_network(services: dict[str, Any]) -> None:
    """The shape of the deployment is the shape of the boundary."""
    assert [name for name, service in services.items() if service.get("ports")] == ["gateway"]
    assert services["gateway"]["ports"][0]["host_ip"] == "127.0.0.1"
    networks = {name: set(service["networks"]) for name, service in services.items()}
    assert networks["cloud"] == {"wan"}
    assert {name for name in networks if "wan" in networks[name]} == {"cloud", "edge", "scheduler"}


def test_the_cloud_gets_nothing_of_a_client(services: dict[str, Any]) -> None:
    """Keys of clients and the collector of the site stay on the site."""
    assert {name for name, s in services.items() if "EDGEWEAVE_GATEWAY__API_KEYS" in s["environment"]} == {"gateway"}
    assert "EDGEWEAVE_COMMON__OTLP_ENDPOINT" not in services["cloud"]["environment"]


def test_the_example_sets_each_variable_of_the_file_and_no_other() -> None:
    """What can be set is seen in one place."""
    used = set(re.findall(r"\$\{(\w+)", COMPOSE.read_text()))
    assert set(re.findall(r"^(\w+)=", EXAMPLE.read_text(), re.MULTILINE)) == used


@pytest.mark.parametrize("service", SETTINGS)
def test_each_image_runs_its_service_and_asks_for_its_health(services: dict[str, Any], service: str) -> None:
    """Entry, health check and port are those of the service."""
    dockerfile = (ROOT / "services" / service / "Dockerfile").read_text()
    assert f'CMD ["python", "-m", "edgeweave_{service}"]' in dockerfile
    assert f'CMD ["python", "-m", "edgeweave.rpc.probe", "{service}"]' in dockerfile
    environment = services[service]["environment"]
    listen = environment.get(f"EDGEWEAVE_{service.upper()}__LISTEN", f":{environment.get('EDGEWEAVE_GATEWAY__PORT')}")
    assert f"EXPOSE {listen.rpartition(':')[2]}\n" in dockerfile
