"""What is random about a direction of a link: jitter and stalls, drawn from a seed.

Knows a profile and the time of the link. The same seed and the same content give the same times.
"""

from random import Random

from edgeweave.link.profile import LinkProfile


class Unsteadiness:
    """Draws the jitter of each piece, and when the link stalls and for how long."""

    def __init__(self, profile: LinkProfile, *, seed: str) -> None:
        self._profile = profile
        self._draw = Random(seed)  # noqa: S311 (an emulator, no secret)
        self._stall_at_ns: int | None = None

    def change(self, profile: LinkProfile) -> None:
        """Draw for another profile from now on."""
        if (profile.stalls_per_s, profile.stall_ns) != (self._profile.stalls_per_s, self._profile.stall_ns):
            self._stall_at_ns = None
        self._profile = profile

    def jitter_ns(self) -> int:
        """Return how much longer the next piece travels."""
        return self._draw.randrange(self._profile.jitter_ns + 1) if self._profile.jitter_ns else 0

    def sent_ns(self, start_ns: int, *, transmission_ns: int) -> int:
        """Return when a piece has left that starts at `start_ns`, behind the stalls that come before its end.

        Calls come in order of `start_ns`; stalls that passed while nothing was sent held nobody up.
        """
        sent_ns = start_ns + transmission_ns
        if not (self._profile.stalls_per_s and self._profile.stall_ns):
            return sent_ns
        if self._stall_at_ns is None:
            self._stall_at_ns = start_ns + self._gap_ns()
        while self._stall_at_ns <= sent_ns:
            stall_ns = round(self._draw.expovariate(1 / self._profile.stall_ns))
            passed_ns = max(0, start_ns - self._stall_at_ns)
            sent_ns += max(0, stall_ns - passed_ns)
            self._stall_at_ns += stall_ns + self._gap_ns()
        return sent_ns

    def _gap_ns(self) -> int:
        """Return the time from the end of a stall to the next; with the stalls themselves it makes the rate asked for.

        A whole nanosecond at least, so that time goes on.
        """
        mean_ns = 1e9 / self._profile.stalls_per_s - self._profile.stall_ns
        return 1 + round(self._draw.expovariate(1 / mean_ns))
