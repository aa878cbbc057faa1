"""Engines whose computing is replaced by the time of a hardware profile.

Everything else is real: cores, streams, lanes, KV accounts, and hidden states of the real size. Their first bytes are
a digest of all that a real hidden state depends on, so that the tokens prove that every row went every way once.
Imports no torch.
"""

from edgeweave.emulated.cloud import EmulatedCloud
from edgeweave.emulated.edge import EmulatedEdge
from edgeweave.emulated.exact import keep_exact_time
from edgeweave.emulated.load import emulated_cloud, emulated_edge
from edgeweave.emulated.profile_time import ProfileTime
from edgeweave.emulated.reference import reference_tokens

__all__ = [
    "EmulatedCloud",
    "EmulatedEdge",
    "ProfileTime",
    "emulated_cloud",
    "emulated_edge",
    "keep_exact_time",
    "reference_tokens",
]
