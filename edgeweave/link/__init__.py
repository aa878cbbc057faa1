"""The link emulator: delay, rate and unsteadiness of a wide-area link, as a TCP proxy in a process of its own."""

from edgeweave.link.control import LinkControl
from edgeweave.link.link import Link
from edgeweave.link.process import LinkProcess
from edgeweave.link.profile import LinkProfile
from edgeweave.link.stats import LinkStats

__all__ = ["Link", "LinkControl", "LinkProcess", "LinkProfile", "LinkStats"]
