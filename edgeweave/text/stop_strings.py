"""Stop strings: where an output ends by its text.

Knows how much text may be given without ever giving a part of a stop string. Does not know tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple


class _Match(NamedTuple):
    """A stop string found at `[start, stop)`; ordered by what is complete first, then by what began first."""

    stop: int
    start: int


class StopStrings:
    """Passes text on up to the first stop string that is complete, whatever pieces the text comes in."""

    def __init__(self, stops: Sequence[str]) -> None:
        if not all(stops):
            raise ValueError("a stop string must not be empty")
        self._stops = tuple(stops)
        self._held = ""
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found; everything after it is dropped."""
        return self._stopped

    def push(self, text: str) -> str:
        """Return what may be given now: all but the longest end that could still become a stop string."""
        if self._stopped:
            return ""
        text = self._held + text
        match = min(self._matches(text), default=None)
        if match:
            self._stopped, self._held = True, ""
            return text[: match.start]
        split = len(text) - self._num_held(text)
        self._held = text[split:]
        return text[:split]

    def finish(self) -> str:
        """Return what was held back: no more text comes, so it is no stop string."""
        text, self._held = self._held, ""
        return text

    def _matches(self, text: str) -> list[_Match]:
        starts = [(text.find(stop), len(stop)) for stop in self._stops]
        return [_Match(stop=start + length, start=start) for start, length in starts if start >= 0]

    def _num_held(self, text: str) -> int:
        """Return the length of the longest end of `text` that begins a stop string."""
        return max((_num_overlap(text, stop) for stop in self._stops), default=0)


def _num_overlap(text: str, stop: str) -> int:
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)
