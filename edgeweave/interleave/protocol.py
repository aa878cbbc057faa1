"""The version of the protocol between edge, cloud and scheduler."""

from typing import Final

PROTOCOL: Final = 2
"""Both sides of a session must speak this version; it rises when a message or a rule changes its meaning."""
