"""The nouns that open a session at an engine.

They are told by the shells of the services to each other; the cores begin after them and never see them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttachCloud:
    """Opens a session at the cloud engine, and ends an older one of the same `site`."""

    session: int
    site: bytes


@dataclass(frozen=True, slots=True)
class AttachEdge:
    """Opens a session at the edge engine.

    `cloud_target` is where the edge dials the cloud for its lanes, `host:port`; None: the edge holds all
    layers. `max_chunk_tokens` is the size of the chunk that warms the lanes.
    """

    session: int
    cloud_target: str | None
    max_chunk_tokens: int
