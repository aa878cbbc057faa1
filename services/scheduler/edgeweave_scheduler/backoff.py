"""How long to wait before the next try. Doubles from the shortest wait to the longest."""


class Backoff:
    """Waits between tries, in seconds."""

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._next_s = shortest_s

    def reset(self) -> None:
        """A try went well."""
        self._next_s = self._shortest_s

    def next_s(self, *, is_hopeless: bool = False) -> float:
        """Return the next wait; the longest where trying again cannot help until somebody changes something."""
        if is_hopeless:
            return self._longest_s
        wait_s, self._next_s = self._next_s, min(self._next_s * 2, self._longest_s)
        return wait_s
