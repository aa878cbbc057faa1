"""What can be asked of a running link, in words: the same in a script and over the control port.

Knows the words, their units and what they may be. Does not know when they come, nor what a link does about them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from edgeweave.link.profile import NS_PER_KM, LinkProfile


@dataclass(frozen=True, slots=True)
class Set:
    """Change what is named of the profile."""

    values: Mapping[str, float]

    def applied(self, profile: LinkProfile) -> LinkProfile:
        """Return `profile` with the change.

        Raises:
            ValueError: that would be no link.
        """
        changed = dict(_FIELDS[word](value) for word, value in self.values.items())
        return replace(profile, **changed)


@dataclass(frozen=True, slots=True)
class Stall:
    """Let nothing leave for a while, both ways."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Reset all connections, and refuse new ones."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Take connections again."""


Change = Set | Stall | Cut | Restore


_FIELDS: Mapping[str, Callable[[float], tuple[str, Any]]] = {
    "distance_km": lambda km: ("delay_ns", round(km * NS_PER_KM)),
    "delay_ms": lambda ms: ("delay_ns", round(ms * 1e6)),
    "bandwidth_gbit": lambda gbit: ("bytes_per_s", round(gbit * 1e9 / 8)),
    "jitter_ms": lambda ms: ("jitter_ns", round(ms * 1e6)),
    "stalls_per_s": lambda rate: ("stalls_per_s", rate),
    "stall_ms": lambda ms: ("stall_ns", round(ms * 1e6)),
}
_SHAPES = 'one of {"set": {"distance_km": 3000}}, {"stall": {"ms": 50}}, "cut", "restore"'


def change_of(words: object) -> Change:
    """Return the change that `words`, as read from JSON or YAML, ask for.

    Raises:
        ValueError: they ask for nothing that is known.
    """
    match words:
        case "cut":
            return Cut()
        case "restore":
            return Restore()
        case {"stall": {"ms": ms, **rest}, **more} if not rest and not more:
            return Stall(round(_number("stall", ms) * 1e6))
        case {"set": {**values}, **more} if values and not more:
            return Set({name: _number(name, value) for word, value in values.items() for name in [_known(word)]})
    raise ValueError(f"{words!r} is nothing that a link can do; give {_SHAPES}")


def _known(word: object) -> str:
    if not isinstance(word, str) or word not in _FIELDS:
        raise ValueError(f"set: a link has no {word!r}; give {', '.join(_FIELDS)}")
    return word


def _number(word: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{word}: {value!r} is no number of at least 0")
    return value
