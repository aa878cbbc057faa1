"""Settings of the cloud engine."""

from typing import ClassVar, Literal

from pydantic import Field

from edgeweave.settings.engine import EngineSettings
from edgeweave.settings.values import BodySplitText, ListenAddress


class CloudSettings(EngineSettings):
    """The body of the model, away from the site."""

    section: ClassVar[str] = "cloud"

    listen: ListenAddress = Field(
        default="127.0.0.1:50052", description="address that scheduler and edge engine dial, HOST:PORT"
    )
    split: BodySplitText = Field(default="1:1", description="layers that the edge keeps as head and tail, such as 1:1")
    role: Literal["mixed"] = Field(
        default="mixed", description="what this engine runs: mixed, prefill and decode alike"
    )
