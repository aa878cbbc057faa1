"""Settings of the scheduler."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from edgeweave.settings.common import CommonSettings
from edgeweave.settings.values import (
    Count,
    ListenAddress,
    OptionalCount,
    OptionalListen,
    OptionalMilliseconds,
    OptionalNumber,
    OptionalTarget,
    Seconds,
    TargetAddress,
)


class SchedulerSettings(CommonSettings):
    """Where the engines are, what one batch may hold, and how work is interleaved."""

    section: ClassVar[str] = "scheduler"

    listen: ListenAddress = Field(default="127.0.0.1:50050", description="address that gateway and SDK dial, HOST:PORT")
    edge: TargetAddress = Field(default="127.0.0.1:50051", description="address of the edge engine, HOST:PORT")
    cloud: OptionalTarget = Field(
        default="127.0.0.1:50052",
        description="address of the cloud engine, HOST:PORT; none: the edge engine holds all layers",
    )
    site: Annotated[str, Field(min_length=1)] = Field(
        default="site", description="name of this site; the cloud sees only a digest of it, to tell sites apart"
    )
    edge_cloud_target: OptionalTarget = Field(
        default=None,
        description="address by which the edge reaches the cloud, HOST:PORT; none: as the scheduler does",
    )

    metrics_listen: OptionalListen = Field(
        default=None,
        description="address that Prometheus asks for /metrics of the scheduler, HOST:PORT; none: nowhere. No key is "
        "asked for, so let only the network of the site reach it",
    )

    plan: Literal["serial", "1p1d", "2p1d", "adaptive"] = Field(
        default="adaptive", description="how prefill and decode are interleaved: serial, 1p1d, 2p1d or adaptive"
    )
    objective: Literal["throughput", "tpot", "ttft"] = Field(
        default="throughput",
        description="what the adaptive plan is after: throughput, tpot (time per output token) or ttft (to the first)",
    )
    tpot_slo_ms: OptionalMilliseconds = Field(
        default=None, description="time per output token that the objective tpot keeps, in milliseconds; none: none"
    )
    ttft_slo_ms: OptionalMilliseconds = Field(
        default=None,
        description="time to first token that the objective ttft keeps, in milliseconds; none: as short as can be",
    )
    max_prefills: OptionalCount = Field(
        default=None, description="most prefill chunks in flight, at least 1; none: by the plan"
    )
    max_steps: OptionalCount = Field(
        default=None, description="most decode steps in flight, at least 1; none: by the plan"
    )
    num_segments: OptionalCount = Field(
        default=None,
        description="segments that the body of a chunk is cut into, at least 1; none: 4",
    )
    fuse: Literal["auto", "never", "always"] = Field(
        default="auto",
        description="whether rows of a decode step ride in prefill, in one pass over the weights: auto (under the "
        "adaptive plan, where that is predicted to pay), never or always (whenever both wait)",
    )
    max_grace_us: Annotated[int, Field(ge=0)] = Field(
        default=10_000, description="longest wait of the cloud for a decode step, in microseconds, at least 0"
    )

    max_prefill_batch_size: Count = Field(default=50, description="most sequences of one chunk, at least 1")
    max_prefill_tokens: Count = Field(default=8192, description="most tokens of one chunk, at least 1")
    max_seq_len: Count = Field(
        default=2560, description="most tokens of one sequence, prompt and output together, at least 1"
    )
    max_batch_size: Count = Field(default=200, description="most sequences of one decode step, at least 1")
    prefill_ahead: OptionalNumber = Field(
        default=None,
        description="sequences beyond what the steps hold that are prefilled and wait for a place, at least 0; "
        "none: as many as a step holds",
    )
    chunk_tokens: Count = Field(default=512, description="tokens of one piece of a long prompt, at least 1")
    long_prompt_tokens: Count = Field(
        default=2048, description="prompts of at least this many tokens are prefilled alone, at least 1"
    )
    dynamic_prefill_size: bool = Field(
        default=True,
        description="whether a chunk is closed at 4096 tokens, or 2048 with a prompt of 1024 in it: true or false",
    )
    max_waiting: Count = Field(
        default=1000, description="most requests that wait; more are refused as overload, at least 1"
    )

    keep_spans: Annotated[int, Field(ge=0)] = Field(
        default=50_000,
        description="newest spans that are kept for the timeline page and edgeweave trace export, so many of timelines "
        "and as many of requests, some 50 MB together; at least 0; 0: none",
    )
    unit_deadline_s: Seconds = Field(
        default=60.0,
        description="longest time that a chunk or step may be away, in seconds; then the session ends",
    )
    drain_s: Seconds = Field(
        default=30.0, description="time that open requests get to end when the scheduler stops, in seconds"
    )
    keepalive_s: Seconds = Field(
        default=2.0, description="time between two signs of life on a stream to an engine, in seconds"
    )
    connect_backoff_s: Seconds = Field(
        default=0.2, description="shortest time between two tries to reach the engines, in seconds"
    )
    max_connect_backoff_s: Seconds = Field(
        default=5.0, description="longest time between two tries to reach the engines, in seconds"
    )

    @model_validator(mode="after")
    def _backoff_is_a_range(self) -> "SchedulerSettings":
        if self.max_connect_backoff_s < self.connect_backoff_s:
            raise ValueError(
                f"max_connect_backoff_s {self.max_connect_backoff_s} is below connect_backoff_s "
                f"{self.connect_backoff_s}; it has to be at least as long"
            )
        return self
