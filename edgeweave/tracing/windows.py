"""Windows of time: one trace for each engine and window, so that no trace grows for ever."""

WINDOW_US = 10_000_000


def window_of(at_us: int) -> int:
    """Return the number of the window that a time by the wall clock lies in."""
    return at_us // WINDOW_US
