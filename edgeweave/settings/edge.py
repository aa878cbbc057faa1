"""Settings of the edge engine."""

from typing import ClassVar

from pydantic import Field

from edgeweave.settings.engine import EngineSettings
from edgeweave.settings.values import Count, ListenAddress, SplitText


class EdgeSettings(EngineSettings):
    """Head and tail on the site, or the whole model with the split `none`."""

    section: ClassVar[str] = "edge"

    listen: ListenAddress = Field(default="127.0.0.1:50051", description="address that the scheduler dials, HOST:PORT")
    split: SplitText = Field(
        default="1:1", description="layers of head and tail, such as 1:1; none: all layers are here"
    )
    head_piece_tokens: Count = Field(
        default=128, description="tokens of a head that run without yielding to a turnaround, at least 1"
    )
