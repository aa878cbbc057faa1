"""One line for one wrong setting: its key, where it was written, what is wrong, and what is legal."""

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from edgeweave.settings.common import CommonSettings
from edgeweave.settings.sources import Entries, Entry, Key, flag_of, leaf_keys, variable_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def problem_lines(
    service: type[CommonSettings], error: ValidationError, entries: Entries, *, require: bool
) -> Iterator[str]:
    """Yield a line for each problem; what is missing counts only where it is required."""
    for details in error.errors(include_url=False):
        key = (service.section, *(str(part) for part in details["loc"]))
        if details["type"] == "missing":
            if require or len(key) > 2:  # noqa: PLR2004 (a nested key: part of a mapping that was begun)
                yield _missing_line(key)
        elif details["type"] == "extra_forbidden":
            entry = _entry_at(entries, key)
            yield unknown_key_line(entry.key, entry.where, legal=_siblings(service, key), noun="setting")
        else:
            yield _illegal_line(service, details, key, entries)


def unknown_key_line(key: Key, where: str, *, legal: Sequence[str], noun: str) -> str:
    """Return the line for a key, flag or section that does not exist."""
    written = where if noun == "flag" else key[-1]
    near = difflib.get_close_matches(written, legal, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{'.'.join(key)} ({where}): no such {noun}{hint}; legal: {', '.join(legal)}"


def _missing_line(key: Key) -> str:
    return (
        f"{'.'.join(key)}: is required and was not given; set it in the settings file, as {variable_of(key)} "
        f"or by {flag_of(key)}"
    )


def _illegal_line(service: type[CommonSettings], details: "ErrorDetails", key: Key, entries: Entries) -> str:
    reason = details["msg"].removeprefix("Value error, ")
    if len(key) == 1:  # a rule between several settings, which names them itself
        return f"{service.section}: {reason}"
    entry = _entry_at(entries, key)
    value = repr(details["input"]) if service.model_fields[key[1]].repr else "the value"
    legal = _description(service, key)
    return (
        f"{'.'.join(entry.key)} ({entry.where}): {value} is not legal: {reason[0].lower()}{reason[1:]}"
        f"{f'; legal: {legal}' if legal else ''}"
    )


def _description(service: type[CommonSettings], key: Key) -> str | None:
    descriptions = dict(leaf_keys(service, base=(service.section,)))
    return next((text for leaf, text in descriptions.items() if leaf == key[: len(leaf)]), None)


def _siblings(service: type[CommonSettings], key: Key) -> list[str]:
    """Return the names that are legal where the last name of `key` stands."""
    depth = len(key) - 1
    leaves = [leaf for leaf, _ in leaf_keys(service, base=(service.section,)) if leaf[:depth] == key[:depth]]
    return list(dict.fromkeys(leaf[depth] for leaf in leaves if len(leaf) > depth))


def _entry_at(entries: Entries, key: Key) -> Entry:
    """Return the entry that `key` comes from: written as a whole, as a part of it, or around it."""
    return next(entry for own, entry in entries.items() if own == key[: len(own)] or key == own[: len(key)])
