"""Settings that both engines have."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ByteSize, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from edgeweave.settings.common import CommonSettings
from edgeweave.settings.values import (
    Count,
    DeviceText,
    OptionalGbit,
    OptionalListen,
    OptionalText,
    PaceText,
    PositiveBytes,
    Seconds,
)


class EngineSettings(CommonSettings):
    """Model, device and memory of an engine."""

    emulate: OptionalText = Field(
        default=None,
        description="instead of a model, a hardware profile whose times stand for computing: npu, or a YAML file",
    )
    model: Path | None = Field(default=None, description="model folder, with config.json and safetensors files")
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        default="float32",
        description="element type of weights and hidden states: float32, bfloat16 or float16",
    )
    weights_dtype: Literal["float32", "bfloat16", "float16"] | None = Field(
        default=None,
        description="element type in which the weights of linear layers are kept and multiplied, where it is not "
        "dtype: with bfloat16 a decode step reads half as much, and a processor that has instructions for it "
        "multiplies twice as fast, at the price of exactness",
    )
    device: DeviceText = Field(default="cpu", description="cpu, cuda or npu, with an index if need be: cuda:0")
    threads: Count = Field(default=1, description="CPU threads that compute, at least 1")
    kv_bytes: PositiveBytes = Field(
        default=ByteSize(1 << 30), description="memory for keys and values, in bytes or as 1GiB"
    )
    block_tokens: Count = Field(default=16, description="tokens of one KV block, at least 1")
    keepalive_s: Seconds = Field(
        default=2.0, description="time between two signs of life on a stream of this engine, in seconds"
    )
    drain_s: Seconds = Field(
        default=10.0, description="time that open requests get to end when the engine stops, in seconds"
    )
    metrics_listen: OptionalListen = Field(
        default=None,
        description="address that Prometheus asks for /metrics of this engine, HOST:PORT; none: nowhere. No key is "
        "asked for, so let only the network of whoever runs this engine reach it",
    )
    frame_bytes: Annotated[int, Field(ge=4096, le=4 << 20)] = Field(
        default=262_144, description="payload of a hidden-state frame to come close to, in bytes, 4096 to 4194304"
    )
    link_gbit: OptionalGbit = Field(
        default=None,
        description="bandwidth of the link between site and cloud, in Gbit/s, where it is known: prefill keeps below "
        "it, and a lane that opens with less than half of it is warned of",
    )
    prefill_pace: PaceText = Field(
        default="auto",
        description="rate at which this engine sends prefill: auto, a little below what the link is seen to carry, so "
        "that decode finds no queue; off; or a number of Gbit/s",
    )
    staging_bytes: PositiveBytes = Field(
        default=ByteSize(512 << 20),
        description="most hidden states that wait here for their turn, in bytes or as 512MiB",
    )

    @field_validator("model")
    @classmethod
    def _model_or_profile(cls, model: Path | None, info: ValidationInfo) -> Path | None:
        """Ask for exactly one of `model` and `emulate`."""
        is_emulated = info.data.get("emulate") is not None
        if model is None and not is_emulated:
            raise PydanticCustomError("missing", "Field required")
        if model is not None and is_emulated:
            raise ValueError("emulate is set as well, and takes the place of a model; leave out one of them")
        return model
