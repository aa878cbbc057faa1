"""The link emulator: delay and rate of a wide-area link, as a TCP proxy in a process of its own."""

from edgeweave.link.link import Link
from edgeweave.link.process import LinkProcess
from edgeweave.link.profile import LinkProfile
from edgeweave.link.stats import LinkStats

__all__ = ["Link", "LinkProcess", "LinkProfile", "LinkStats"]
