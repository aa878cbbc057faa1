"""One settings file: our sections, a pasted `ScheduleConfig` of MindIE, or both.

Knows which form a file has. Does not know which keys or values are legal in our sections.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings.mindie import SECTION, parse_schedule_config
from edgeweave.settings.sources import Entries, entries_of_mapping
from edgeweave.settings.yaml_file import parse_mapping

_PASTED_KEYS = (SECTION, "BackendConfig")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file says, what is wrong in its pasted part, and the keys there that are not followed."""

    entries: Entries
    problems: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


NO_FILE = SettingsFile({})


def read_settings_file(path: Path, *, sections: Collection[str]) -> SettingsFile:
    """Return what `path` says; `sections` are the names of ours.

    A pasted part speaks for the section `scheduler`, which is stronger where it says the same thing.

    Raises:
        InvalidSettingsError: the file cannot be read, or is not a mapping.
    """
    text = _text_of(path)
    try:
        mapping = parse_mapping(text, where=path.name)
    except InvalidSettingsError:
        if SECTION not in text:
            raise
        return _pasted(text, where=path.name)  # a piece of a file, as documentation prints it, is not YAML
    if not mapping.keys() & set(_PASTED_KEYS):
        return SettingsFile(entries_of_mapping(mapping, where=path.name))
    # Beside sections of ours, only the pasted part is MindIE's; else the whole file is, with sections for others.
    is_mixed = bool(mapping.keys() & set(sections))
    theirs = {key: value for key, value in mapping.items() if key in _PASTED_KEYS or not is_mixed}
    ours = {key: value for key, value in mapping.items() if key not in theirs}
    pasted = _pasted(json.dumps(theirs), where=path.name)
    return replace(pasted, entries=pasted.entries | entries_of_mapping(ours, where=path.name))


def _pasted(text: str, *, where: str) -> SettingsFile:
    try:
        config = parse_schedule_config(text)
    except InvalidSettingsError as error:
        return SettingsFile({}, tuple(f"{line} ({where})" for line in str(error).splitlines()))
    entries = entries_of_mapping(config.fields, where=f"{where}: {SECTION}", base=("scheduler",))
    return SettingsFile(entries, (), config.ignored)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise InvalidSettingsError(f"{path}: {reason}; --config has to name a readable YAML or JSON file") from error
