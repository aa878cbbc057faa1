"""Every choice of layers makes one deployment whose parts fit together, whatever is put over what.

The real Compose binary resolves the files; the settings of each service read the environment that it would get.
"""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from edgeweave.settings.engine import EngineSettings
from fakes.compose import (
    CHOICES,
    CLOUD_TARGET,
    FOLDER,
    SETTINGS,
    TOOLS,
    Layers,
    dialled,
    mesh_services,
    ports_of,
    resolved,
    services,
    settings_of,
)
from fakes.image import image_of

every_choice = pytest.mark.parametrize("layers", CHOICES, ids=lambda layers: "+".join(layers) or "alone")


@every_choice
def test_what_runs_is_what_the_layers_say(layers: Layers) -> None:
    """A site has no cloud engine, a cloud has nothing else of ours, and each other layer adds its own."""
    mesh = {"cloud"} if "cloud" in layers else SETTINGS.keys() - ({"cloud"} if "edge" in layers else set())
    assert mesh_services(*layers).keys() == mesh
    others = ({"link"} if "wan" in layers else set()) | (set(TOOLS) if "observability" in layers else set())
    assert services(*layers).keys() - mesh == others


@every_choice
def test_each_service_takes_its_environment(layers: Layers) -> None:
    """A variable that is misspelt, or has an illegal value, would stop the container."""
    for name, service in mesh_services(*layers).items():
        assert settings_of(name, service).section == name


@every_choice
def test_addresses_fit_together(layers: Layers) -> None:
    """Who dials names a service and a port that it listens on, and can reach it; with the link, all goes through it.

    The scheduler tells the edge engine where the lanes lead: to where its own tasks go, since no other address is set.
    """
    running = services(*layers)
    found = {(name, target) for name, service in running.items() for target in dialled(service)}
    assert found == _expected_addresses(layers)
    assert not any("EDGE_CLOUD_TARGET" in name for each in running.values() for name in each.get("environment", {}))
    for name, target in found:
        host, _, port = target.rpartition(":")
        if target != CLOUD_TARGET:
            assert port in ports_of(running[host])
            assert running[name]["networks"].keys() & running[host]["networks"].keys(), f"{name} cannot reach {host}"


@every_choice
def test_nobody_but_the_site_or_the_link_reaches_the_cloud(layers: Layers) -> None:
    """The way over is one: scheduler and edge engine share a network with the cloud engine, or the link does.

    Prometheus asks the cloud engine for its metrics; the gateway and the other tools do not see it. The network has a
    way out only where the other side is on another host.
    """
    model = resolved(*layers)
    near = {name for name, service in model["services"].items() if "wan" in service["networks"]}
    over = {"link"} if "wan" in layers else {"scheduler", "edge"}
    assert near == ({"cloud", "prometheus"} | over) & model["services"].keys()
    if "cloud" in model["services"]:
        assert set(model["services"]["cloud"]["networks"]) == {"wan"}
    is_one_host = not {"edge", "cloud"} & set(layers)
    assert model["networks"]["wan"].get("internal", False) is is_one_host


@every_choice
def test_no_other_port_is_published(layers: Layers) -> None:
    """The gateway for clients, the cloud engine for the site, and the pages of the tools for this host alone."""
    published = {
        (name, port["host_ip"], port["target"])
        for name, service in services(*layers).items()
        for port in service.get("ports", [])
    }
    mesh = {("cloud", "0.0.0.0", 50052)} if "cloud" in layers else {("gateway", "127.0.0.1", 8000)}  # noqa: S104 - read
    tools = {(name, "127.0.0.1", port) for name, port in TOOLS.items()} if "observability" in layers else set()
    assert published == mesh | tools


@every_choice
def test_each_part_starts_when_what_it_dials_is_healthy(layers: Layers) -> None:
    """The wait is for health and not for a process, and whoever is waited for has a health check."""
    running = services(*layers)
    for name in running.keys() - TOOLS.keys():
        waits = running[name].get("depends_on", {})
        hosts = {target.partition(":")[0] for target in dialled(running[name])}
        assert waits.keys() >= hosts & running.keys()
        assert {wait["condition"] for wait in waits.values()} <= {"service_healthy"}
        assert running.keys() >= {other for other, wait in waits.items() if wait["required"]}
        for other in waits.keys() & running.keys() - SETTINGS.keys():
            assert running[other]["healthcheck"]["test"][0] == "CMD"


@every_choice
def test_between_two_hosts_everything_is_mutual_tls(layers: Layers) -> None:
    """Files are where the settings look, and the health check asks by a name that the certificate has."""
    is_between_hosts = bool({"edge", "cloud"} & set(layers))
    for name, service in mesh_services(*layers).items():
        tls = settings_of(name, service).tls
        assert (tls is not None) is is_between_hosts
        if tls is not None:
            (mount,) = [mount for mount in service["volumes"] if mount["target"] == "/tls"]
            assert mount["read_only"]
            assert {file.parent for file in (tls.ca_file, tls.cert_file, tls.key_file)} == {Path(mount["target"])}
        if tls is not None and name != "gateway":
            assert service["healthcheck"]["test"] == ["CMD", *image_of(name).health_check, "--name", name]


@every_choice
def test_what_is_mounted_from_here_is_here(layers: Layers) -> None:
    """Nothing is mounted to be written to, and what is missing stops the start instead of becoming an empty folder."""
    mounts = [mount for service in services(*layers).values() for mount in service.get("volumes", [])]
    for mount in (mount for mount in mounts if mount["type"] == "bind"):
        assert mount["read_only"]
        assert mount["bind"]["create_host_path"] is False
        source = Path(mount["source"])
        is_of_the_user = source.parent == FOLDER or not source.is_relative_to(FOLDER.parent)
        assert is_of_the_user or source.exists(), source


@pytest.mark.parametrize(
    "layers", [("edge", "wan", "observability"), ("edge", "wan", "npu"), ("cloud", "npu", "observability")]
)
def test_the_order_of_the_layers_does_not_matter(layers: Layers) -> None:
    """Who puts one over the other gets the same as who does it the other way round."""
    for order in permutations(layers):
        assert _in_one_order(resolved(*order)) == _in_one_order(resolved(*layers))


def test_an_engine_on_an_npu_has_a_device_and_an_image_of_its_own() -> None:
    """Both engines do not share a device, and the image for it does not take the name of the one without."""
    running = services("npu")
    for name in ("edge", "cloud"):
        assert running[name]["image"] == f"{services()[name]['image']}-npu"
        assert running[name]["build"]["args"]["EXTRA"] == "npu"
        settings = settings_of(name, running[name])
        assert isinstance(settings, EngineSettings)
        assert settings.device == "npu:0"
    edge, cloud = ({device["source"] for device in running[name]["devices"]} for name in ("edge", "cloud"))
    assert edge & cloud == {"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"}
    assert (edge - cloud, cloud - edge) == ({"/dev/davinci0"}, {"/dev/davinci1"})


def _expected_addresses(layers: Layers) -> set[tuple[str, str]]:
    beyond = CLOUD_TARGET if "edge" in layers else "cloud:50052"
    link = {("link", beyond)} if "wan" in layers else set()
    if "cloud" in layers:
        return link
    over = "link:50052" if "wan" in layers else beyond
    return link | {("gateway", "scheduler:50050"), ("scheduler", "edge:50051"), ("scheduler", over)}


def _in_one_order(model: Any) -> Any:
    if isinstance(model, dict):
        return {key: _in_one_order(value) for key, value in model.items()}
    return sorted(map(_in_one_order, model), key=repr) if isinstance(model, list) else model
