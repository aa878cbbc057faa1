"""What a link has carried, as one line."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class LinkStats:
    """Sums since the start of the link."""

    num_connections: int
    """Connections that were accepted."""
    num_open: int
    """Connections that are open now."""
    to_target_bytes: int
    """Bytes that entered towards the target."""
    to_client_bytes: int
    """Bytes that entered towards the clients."""

    def line(self) -> str:
        """Return the stats as one line of JSON."""
        return json.dumps(asdict(self))
