"""The layer of the tools shows the mesh, and takes nothing from the cloud engine that it does not give by itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.compose import (
    CHOICES,
    FOLDER,
    SETTINGS,
    TOOLS,
    Layers,
    mesh_services,
    ports_of,
    scrape_targets,
    services,
    settings_of,
)

PROVISIONING = FOLDER.parent / "grafana" / "provisioning"
every_choice = pytest.mark.parametrize("layers", CHOICES, ids=lambda layers: "+".join(layers) or "alone")


@every_choice
def test_the_cloud_exports_nothing_to_the_site(layers: Layers) -> None:
    """Spans go from the site to its own collector; the cloud engine is told of none, whatever it would be set to."""
    for name, service in mesh_services(*layers).items():
        if name == "cloud":
            assert not any("OTLP" in variable for variable in service["environment"])
        else:
            endpoint = "http://jaeger:4317" if "observability" in layers else None
            assert settings_of(name, service).otlp_endpoint == endpoint


@pytest.mark.parametrize("layers", [layers for layers in CHOICES if "observability" in layers], ids="+".join)
def test_metrics_are_asked_for_where_they_are_served(layers: Layers) -> None:
    """Each target of Prometheus is a port of a service that it can reach, and no service is forgotten."""
    targets = scrape_targets()
    assert targets.keys() >= SETTINGS.keys()
    near = services(*layers)["prometheus"]["networks"].keys()
    for name, service in mesh_services(*layers).items():
        assert targets[name] in ports_of(service)
        assert near & service["networks"].keys()


def test_prometheus_reads_the_file_that_is_mounted() -> None:
    """Its rules are beside it, and named from there."""
    prometheus = services("observability")["prometheus"]
    (folder,) = [mount for mount in prometheus["volumes"] if mount["type"] == "bind"]
    config = yaml.safe_load((Path(folder["source"]) / "prometheus.yaml").read_text(encoding="utf-8"))
    assert f"--config.file={folder['target']}/prometheus.yaml" in prometheus["command"]
    assert [(Path(folder["source"]) / name).name for name in config["rule_files"]] == ["alerts.yaml"]
    assert (Path(folder["source"]) / "alerts.yaml").is_file()


def test_grafana_finds_its_sources() -> None:
    """Every source is a tool of this layer, at the port of its page."""
    tools = {f"http://{name}:{port}" for name, port in TOOLS.items() if name != "grafana"}
    assert {source["url"] for source in _sources()} == tools


def test_grafana_finds_its_dashboard_and_the_dashboard_its_sources() -> None:
    """It is mounted in the folder that is looked into, and what it reads from when it is opened is there."""
    (file,) = (PROVISIONING / "dashboards").iterdir()
    (provider,) = yaml.safe_load(file.read_text(encoding="utf-8"))["providers"]
    mounts = services("observability")["grafana"]["volumes"]
    (mount,) = [mount for mount in mounts if Path(mount["target"]).parent == Path(provider["options"]["path"])]
    dashboard = json.loads(Path(mount["source"]).read_text(encoding="utf-8"))
    chosen = [choice for choice in dashboard["templating"]["list"] if choice["type"] == "datasource"]
    assert {(choice["query"], choice["current"]["value"]) for choice in chosen} == {("prometheus", "prometheus")}
    assert {source["uid"] for source in _sources() if source["type"] == "prometheus"} == {"prometheus"}
    assert set(_named_sources(dashboard)) == {f"${{{choice['name']}}}" for choice in chosen}


def _sources() -> list[dict[str, Any]]:
    (file,) = (PROVISIONING / "datasources").iterdir()
    return list(yaml.safe_load(file.read_text(encoding="utf-8"))["datasources"])


def _named_sources(part: Any) -> Iterator[str]:
    """Yield what each panel and query of a dashboard reads from."""
    if isinstance(part, dict) and isinstance(part.get("datasource"), dict):
        yield part["datasource"]["uid"]
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _named_sources(inner)
