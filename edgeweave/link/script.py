"""Changes of a link at times that were written down before: a YAML file.

Knows the form of the file. Does not know the time.

    - at_s: 10
      set: {distance_km: 3000, jitter_ms: 0.5}
    - at_s: 20
      stall: {ms: 200}
    - at_s: 30
      cut:
    - at_s: 32
      restore:
"""

import math
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from edgeweave.errors import InvalidSettingsError
from edgeweave.link.changes import Change, Set, change_of
from edgeweave.link.profile import LinkProfile


@dataclass(frozen=True, slots=True)
class TimedChange:
    """A change, and when it comes, counted from the start of the link."""

    at_ns: int
    change: Change


class Script:
    """Changes in the order of their times."""

    def __init__(self, changes: tuple[TimedChange, ...] = ()) -> None:
        self._changes = deque(sorted(changes, key=lambda timed: timed.at_ns))

    @property
    def next_ns(self) -> int | None:
        """When the next change comes."""
        return self._changes[0].at_ns if self._changes else None

    def take(self, now_ns: int) -> Change | None:
        """Return the next change if its time has come, and forget it."""
        if self._changes and self._changes[0].at_ns <= now_ns:
            return self._changes.popleft().change
        return None


def read_script(path: Path, profile: LinkProfile) -> Script:
    """Return the script in a file, for a link that begins as `profile`.

    Raises:
        InvalidSettingsError: it cannot be read, or an entry is wrong; names the entry.
    """
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InvalidSettingsError(f"link: --script {path}: {reason}; give a readable YAML file") from error
    if not isinstance(entries, list):
        raise InvalidSettingsError(f"link: --script {path}: no list; give entries such as - {{at_s: 10, cut: }}")
    timed = tuple(_timed(entry, number, path) for number, entry in enumerate(entries, 1))
    _check(timed, profile, path)
    return Script(timed)


def _timed(entry: Any, number: int, path: Path) -> TimedChange:
    match entry:
        case {"at_s": int() | float() as at_s, **words} if 0 <= at_s < math.inf:
            try:
                return TimedChange(round(at_s * 1e9), change_of(_bare(words)))
            except ValueError as error:
                raise InvalidSettingsError(f"link: --script {path}, entry {number}: {error}") from error
    complaint = "no at_s; give the seconds since the start of the link"
    raise InvalidSettingsError(f"link: --script {path}, entry {number}: {complaint}")


def _check(timed: tuple[TimedChange, ...], profile: LinkProfile, path: Path) -> None:
    """Go through the profiles that the link will have."""
    for one in sorted(timed, key=lambda one: one.at_ns):
        try:
            profile = one.change.applied(profile) if isinstance(one.change, Set) else profile
        except ValueError as error:
            raise InvalidSettingsError(f"link: --script {path}, at {one.at_ns / 1e9:g} s: {error}") from error


def _bare(words: dict[Any, Any]) -> object:
    """Return what has no values, such as `cut:`, as its word."""
    [(word, values), *more] = words.items() or [(None, None)]
    return word if values is None and not more else words
