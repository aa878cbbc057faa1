"""Settings of the gateway."""

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ByteSize, Field

from edgeweave.settings.common import CommonSettings
from edgeweave.settings.values import OptionalText, PositiveBytes, TargetAddress, TextList


class GatewaySettings(CommonSettings):
    """How HTTP is served, and where the scheduler is."""

    section: ClassVar[str] = "gateway"

    host: str = Field(default="127.0.0.1", min_length=1, description="interface that HTTP is served on")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=8000, description="TCP port that HTTP is served on, 0 to 65535; 0 takes a free one"
    )
    scheduler: TargetAddress = Field(default="127.0.0.1:50050", description="address of the scheduler, HOST:PORT")
    model: Path = Field(description="model folder, for its tokenizer and chat template")
    model_name: OptionalText = Field(
        default=None, description="name that clients give in requests; none: the name of the model folder"
    )
    api_keys: TextList = Field(
        default=[],
        repr=False,
        description="keys that clients may show as bearer tokens, separated by commas; empty asks for none",
    )
    metrics_need_key: bool = Field(
        default=True,
        description="whether /metrics asks for one of api_keys, as /v1/ does: true or false",
    )
    max_body_bytes: PositiveBytes = Field(
        default=ByteSize(8 << 20), description="largest request body, in bytes or as 8MiB"
    )
