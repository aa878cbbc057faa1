"""The commands that make up a mesh on one machine, and the settings that they will find.

Knows addresses, flags and cores. Starts nothing: everything that can be wrong is found before anything runs.
"""

import os
import re
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from edgeweave.child import child_command
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.errors import InvalidSettingsError, ModelNotFoundError
from edgeweave.settings import CloudSettings, CommonSettings, EdgeSettings, GatewaySettings, SchedulerSettings, load
from edgeweave.sim.loads import profile_named

LOOPBACK = "127.0.0.1"
LINK = "link"
_CLOUD_CORE = 1
_CONTROL_NICENESS = 10
_SITE_CORE = 0
_PORTS = range(10_000, 32_000)
_FLAG_OF_LINE = re.compile(r"\(--[a-z-]+\)")


@dataclass(frozen=True, slots=True)
class MeshCommands:
    """Commands by name, in the order of starting, and what is dialled: services and the control of the link."""

    commands: Mapping[str, list[str]]
    gateway: GatewaySettings | None
    scheduler: SchedulerSettings
    edge: EdgeSettings
    cloud: CloudSettings | None
    link_control: str | None


def mesh_commands(options: MeshOptions, environ: Mapping[str, str]) -> MeshCommands:
    """Return the commands of a mesh, on ports that are free now.

    Raises:
        InvalidSettingsError: all that is wrong in options, file and variables; or the port of the gateway is taken.
        ModelNotFoundError: there is no model where one was named.
        InvalidRequestError: there is no profile where one was named.
    """
    control, *addresses = _free_addresses(6)
    flags = _service_flags(options, iter(addresses), control=control)
    _check_named(options, environ)
    gateway, scheduler, edge, cloud = _load_all(flags, environ)
    models = [settings.model for settings in (gateway, edge, cloud) if settings is not None]
    for model in dict.fromkeys(model for model in models if model is not None):
        _check_model(model)
    if gateway is not None:
        _check_port(gateway.host, gateway.port)
    commands = {
        name: child_command(
            options.modules.get(name, "edgeweave.link"),
            *words,
            core=_core(name, options),
            niceness=_niceness(name, options),
        )
        for name, words in flags.items()
    }
    link_control = control if LINK in flags else None
    return MeshCommands(commands, gateway, scheduler, edge, cloud, link_control)


def _service_flags(options: MeshOptions, addresses: Iterator[str], *, control: str) -> dict[str, list[str]]:
    """Return the flags of each part; what was not asked for is left out, and so left to the file."""
    edge, scheduler = next(addresses), next(addresses)
    model = {"config": options.config, "model": options.model}
    engine = {**model, "emulate": options.emulate, "dtype": options.dtype, "weights_dtype": options.weights_dtype}
    link_gbit = None if options.is_centralized else options.bandwidth_gbit
    flags: dict[str, list[str]] = {}
    cloud_target = "none"
    if not options.is_centralized:
        cloud, cloud_target = next(addresses), next(addresses)
        flags["cloud"] = _words(listen=cloud, split=options.split, link_gbit=link_gbit, **engine)
        flags[LINK] = _link_words(options, listen=cloud_target, target=cloud, control=control)
    split = "none" if options.is_centralized else options.split
    flags["edge"] = _words(listen=edge, split=split, link_gbit=link_gbit, **engine)
    flags["scheduler"] = _words(
        listen=scheduler,
        edge=edge,
        cloud=cloud_target,
        edge_cloud_target=cloud_target,
        plan=options.plan,
        max_steps=options.max_steps,
        max_prefills=options.max_prefills,
        num_segments=options.num_segments,
        fuse=options.fuse,
        config=options.config,
    )
    if options.has_gateway:
        port = next(addresses).rpartition(":")[2] if options.port == 0 else options.port
        flags["gateway"] = _words(scheduler=scheduler, port=port, **model)
    return {name: [*words, *options.extra_flags.get(name, ())] for name, words in flags.items()}


def _words(**values: object) -> list[str]:
    named = {f"--{name.replace('_', '-')}": str(value) for name, value in values.items() if value is not None}
    return [word for pair in named.items() for word in pair]


def _link_words(options: MeshOptions, *, listen: str, target: str, control: str) -> list[str]:
    length = {"distance_km": options.distance_km} if options.rtt_ms is None else {"delay_ms": options.rtt_ms / 2}
    return _words(listen=listen, target=target, control=control, bandwidth_gbit=options.bandwidth_gbit, **length)


def _core(name: str, options: MeshOptions) -> int | None:
    """Return the core of a part: what computes far away has one of its own, and the site has the other."""
    if not options.is_pinned:
        return None
    if not {_SITE_CORE, _CLOUD_CORE} <= os.sched_getaffinity(0):
        raise InvalidSettingsError("--pin needs the CPU cores 0 and 1, and this process may not use both")
    return _CLOUD_CORE if name == ("edge" if options.is_centralized else "cloud") else _SITE_CORE


def _niceness(name: str, options: MeshOptions) -> int:
    """Return how much a part gives way on the core that the site shares: a step on its way goes before its tokens."""
    return _CONTROL_NICENESS if options.is_pinned and name in {"scheduler", "gateway"} else 0


def _load_all(
    flags: Mapping[str, list[str]], environ: Mapping[str, str]
) -> tuple[GatewaySettings | None, SchedulerSettings, EdgeSettings, CloudSettings | None]:
    """Return the settings that the services will find; the errors of all of them come together."""
    lines: list[str] = []
    loaded: list[CommonSettings | None] = []
    for kind in (GatewaySettings, SchedulerSettings, EdgeSettings, CloudSettings):
        try:
            loaded.append(load(kind, flags[kind.section], environ) if kind.section in flags else None)
        except InvalidSettingsError as error:
            lines += str(error).splitlines()
    match loaded:
        case [
            GatewaySettings() | None as gateway,
            SchedulerSettings() as scheduler,
            EdgeSettings() as edge,
            CloudSettings() | None as cloud,
        ] if not lines:
            return gateway, scheduler, edge, cloud
        case _:
            raise InvalidSettingsError("\n".join(_first_of_each_flag(lines)))


def _first_of_each_flag(lines: Sequence[str]) -> list[str]:
    """Return the lines without those that complain of the same flag of ours at another service."""
    firsts: dict[str, str] = {}
    for line in lines:
        flag = _FLAG_OF_LINE.search(line)
        firsts.setdefault(flag[0] if flag else line, line)
    return list(firsts.values())


def _check_named(options: MeshOptions, environ: Mapping[str, str]) -> None:
    """Check that there is something to serve."""
    if options.emulate is not None:
        profile_named(options.emulate)
    elif options.model is None and options.config is None and not any(name.endswith("__MODEL") for name in environ):
        raise InvalidSettingsError(
            "no model was named; give its folder by --model, a profile by --emulate, or a settings file by --config"
        )


def _check_model(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ModelNotFoundError(
            f"model folder {folder}: no config.json there; name a folder with a transformers model"
        )


def _check_port(host: str, port: int) -> None:
    try:
        socket.create_server((host, port), family=_family(host)).close()
    except OSError as error:
        raise InvalidSettingsError(
            f"gateway: {host}:{port} cannot be listened on: {os.strerror(error.errno or 0)}; give another --port"
        ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _free_addresses(num_addresses: int) -> list[str]:
    """Return loopback addresses whose ports are free now, each another one.

    They are not among the ports that the kernel gives to clients: an engine listens only when its model is loaded, and
    until then a client could get its port.
    """
    with ExitStack() as closing:
        socks: list[socket.socket] = []
        while len(socks) < num_addresses:
            with suppress(OSError):
                port = _PORTS[secrets.randbelow(len(_PORTS))]
                socks.append(closing.enter_context(socket.create_server((LOOPBACK, port))))
        return ["{}:{}".format(*sock.getsockname()) for sock in socks]
