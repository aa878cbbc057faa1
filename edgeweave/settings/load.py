"""The settings of one service, from defaults, file, variables and flags; a later one is stronger.

In file and environment the section `common` speaks for every service; a service's own section is stronger.
All sections are checked, whichever service is started, and everything that is wrong is reported at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import structlog
from pydantic import ValidationError

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings.cloud import CloudSettings
from edgeweave.settings.common import CommonSettings
from edgeweave.settings.edge import EdgeSettings
from edgeweave.settings.gateway import GatewaySettings
from edgeweave.settings.problems import problem_lines, unknown_key_line
from edgeweave.settings.scheduler import SchedulerSettings
from edgeweave.settings.settings_file import NO_FILE, read_settings_file
from edgeweave.settings.sources import (
    PREFIX,
    Entries,
    Entry,
    Key,
    entries_of_environ,
    flag_of,
    leaf_keys,
    read_flags,
)

SettingsT = TypeVar("SettingsT", bound=CommonSettings)

SERVICES: tuple[type[CommonSettings], ...] = (GatewaySettings, SchedulerSettings, EdgeSettings, CloudSettings)
COMMON = "common"
SECTIONS = (COMMON, *(service.section for service in SERVICES))


def load(settings: type[SettingsT], argv: Sequence[str], environ: Mapping[str, str]) -> SettingsT:
    """Return the settings of the service that is started with `argv` (without the program's name).

    Raises:
        InvalidSettingsError: one line for each thing that is wrong, wherever it was written.
    """
    flags = read_flags(settings, argv)
    config = flags.config or environ.get(f"{PREFIX}CONFIG")
    file = read_settings_file(Path(config), sections=SECTIONS) if config else NO_FILE
    layers = [file.entries, entries_of_environ(environ)]
    lines = [*file.problems, *(_unknown_flag_line(settings, flag) for flag in flags.unknown)]
    lines += [line for entries in layers for line in _stray_lines(entries)]
    loaded = None
    for service in SERVICES:
        entries = _merged(service, [*layers, flags.entries])
        try:
            values = service.model_validate(_nested(entries))
            loaded = values if isinstance(values, settings) else loaded
        except ValidationError as error:
            lines += problem_lines(service, error, entries, require=service is settings)
    if lines or loaded is None:
        raise InvalidSettingsError("\n".join(dict.fromkeys(lines)))
    if file.ignored and settings is SchedulerSettings:
        structlog.get_logger().warning("settings_ignored", file=config, keys=list(file.ignored))
    return loaded


def _common_keys() -> set[str]:
    """Return the settings that `common` may hold: those of several services, but for addresses."""
    names = [name for service in SERVICES for name in service.model_fields]
    return {name for name in names if names.count(name) > 1} - {"listen"}


def _stray_lines(entries: Entries) -> Iterator[str]:
    """Yield a line for each entry that belongs to no section, or that `common` cannot hold."""
    for key, entry in entries.items():
        if key[0] not in SECTIONS:
            yield unknown_key_line(key[:1], entry.where, legal=SECTIONS, noun="section")
        elif len(key) == 1:
            if entry.value not in (None, {}):  # an empty section says nothing
                yield f"{key[0]} ({entry.where}): {entry.value!r} is no mapping of settings"
        elif key[0] == COMMON and key[1] not in _common_keys():
            yield unknown_key_line(key, entry.where, legal=sorted(_common_keys()), noun="setting")


def _unknown_flag_line(settings: type[CommonSettings], flag: str) -> str:
    legal = [flag_of(key) for key, _ in leaf_keys(settings, base=(settings.section,))]
    return unknown_key_line((settings.section,), flag, legal=["--config", *legal], noun="flag")


def _merged(service: type[CommonSettings], layers: Sequence[Entries]) -> Entries:
    """Return what holds for `service`: the strongest of its own entries and of the common ones."""
    merged: Entries = {}
    shared = {(COMMON, name) for name in _common_keys() & service.model_fields.keys()}
    for entries in layers:
        for entry in (entry for key, entry in entries.items() if key[:2] in shared):
            _put(merged, (service.section, *entry.key[1:]), entry)
        for entry in (entry for key, entry in entries.items() if key[0] == service.section and len(key) > 1):
            _put(merged, entry.key, entry)
    return merged


def _put(entries: Entries, key: Key, entry: Entry) -> None:
    """Set `key`; what was set above or below it, such as `tls` beside `tls.ca_file`, gives way."""
    for other in [other for other in entries if key[: len(other)] == other or other[: len(key)] == key]:
        del entries[other]
    entries[key] = entry


def _nested(entries: Entries) -> dict[str, object]:
    root: dict[str, object] = {}
    for key, entry in entries.items():
        branch = root
        for name in key[1:-1]:
            branch = cast("dict[str, object]", branch.setdefault(name, {}))
        branch[key[-1]] = entry.value
    return root
