"""Containers without a container engine: what an image runs, with what Compose gives it, as a plain process.

Each container has an address of its own on the loopback network, so that it listens on the ports that the files say.
Names of services become those addresses, and the folder of the model one that is here; nothing else is changed.
"""

import asyncio
import re
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM

from edgeweave.child import child_command
from edgeweave.cli.service_process import ServiceProcess
from fakes.compose import SETTINGS, Service
from fakes.image import Image, image_of

_MODEL = "/model"
_PAUSE_S = 0.5
_END_TIMEOUT_S = 20.0


class Container:
    """One service as a process. It starts when those that it waits for are healthy."""

    def __init__(self, name: str, service: Service, *, addresses: Mapping[str, str], model: Path) -> None:
        self._service = service
        self._addresses = addresses
        self._address = addresses[name]
        self._model = model
        image = _image_for(service)
        self._health_check = service.get("healthcheck", {}).get("test", ["CMD", *image.health_check])
        variables = {**image.variables, **service.get("environment", {})}
        # Nothing of the environment here, and no folder of ours to work in.
        self._inside = ["env", "--chdir=/", "--ignore-environment"]
        self._inside += [f"{variable}={self._here(value)}" for variable, value in variables.items()]
        program, *words = service.get("command") or image.entry
        assert (program, words[0]) == ("python", "-m")
        command = child_command(*(self._here(word) for word in words[1:]))
        self.process = ServiceProcess(name, command=[*self._inside, *command])
        self.is_healthy = asyncio.Event()

    async def run_until_healthy(self, containers: Mapping[str, "Container"]) -> None:
        """Wait as Compose does, start, and ask for health as its engine does."""
        for other in self._service.get("depends_on", {}):
            await containers[other].is_healthy.wait()
        await self.process.start()
        while await self._probe():
            assert self.process.is_running, "\n".join((self.process.ending, *self.process.lines))
            await asyncio.sleep(_PAUSE_S)
        self.is_healthy.set()

    async def _probe(self) -> int:
        kind, program, *words = self._health_check
        assert (kind, program) == ("CMD", "python")
        here = [self._here(word) for word in words]
        probe = await asyncio.create_subprocess_exec(
            *self._inside, sys.executable, *here, stderr=asyncio.subprocess.DEVNULL
        )
        return await probe.wait()

    def _here(self, text: str) -> str:
        """Return what `text` means without a network of containers and without mounts."""
        text = re.sub(r"\b(?:0\.0\.0\.0|127\.0\.0\.1)\b", self._address, text)
        text = re.sub(r"\b([a-z]+)(?=:\d+$)", lambda name: self._addresses.get(name[1], name[1]), text)
        return str(self._model) if text == _MODEL else text


def container_addresses(services: Mapping[str, Service]) -> dict[str, str]:
    """Return an address for each service, of a network that nobody else here is likely to be on."""
    network = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}"
    return {name: f"{network}.{number}" for number, name in enumerate(services, start=1)}


@asynccontextmanager
async def containers_of(
    services: Mapping[str, Service], *, addresses: Mapping[str, str], model: Path
) -> AsyncIterator[dict[str, Container]]:
    """Start `services` in the order that they ask for, and enter when all are healthy; end them on leaving.

    AssertionError if one ends before that, with what it said, or with another exit code than 0 at the end.
    """
    containers = {name: Container(name, each, addresses=addresses, model=model) for name, each in services.items()}
    try:
        async with asyncio.TaskGroup() as starting:
            for container in containers.values():
                starting.create_task(container.run_until_healthy(containers))
        yield containers
        for container in reversed(_started_in_order(containers, services)):
            container.process.send_signal(SIGTERM)
            async with asyncio.timeout(_END_TIMEOUT_S):
                assert await container.process.wait() == 0, container.process.ending
    finally:
        for process in [container.process for container in containers.values() if container.process.is_running]:
            process.send_signal(SIGKILL)
            await process.wait()


def _started_in_order(containers: Mapping[str, Container], services: Mapping[str, Service]) -> list[Container]:
    """Return the containers, each after those that it waits for."""
    order: list[str] = []
    while len(order) < len(services):
        order += [
            name for name in services if name not in order and set(services[name].get("depends_on", {})) <= set(order)
        ]
    return [containers[name] for name in order]


def _image_for(service: Service) -> Image:
    """Return the image that Compose builds for a service."""
    (name,) = [name for name in SETTINGS if service["build"]["dockerfile"] == f"services/{name}/Dockerfile"]
    return image_of(name)
