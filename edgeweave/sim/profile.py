"""How long a piece of hardware takes: a handful of numbers that stand for an engine.

Times are linear in what they depend on, which is how they are fitted: a fixed part a layer, a part a row or token.
Units: microseconds, bytes. Does not know the order of work.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Time of one layer for a decode step and for a piece of prefill."""

    step_fixed_us: float
    step_row_us: float
    prefill_fixed_us: float
    prefill_token_us: float

    def step_us(self, num_rows: int) -> float:
        """Return the time of a step of `num_rows`."""
        return self.step_fixed_us + self.step_row_us * num_rows

    def prefill_us(self, num_tokens: int) -> float:
        """Return the time of `num_tokens` of prefill."""
        return self.prefill_fixed_us + self.prefill_token_us * num_tokens

    def fused_us(self, num_tokens: int, num_rows: int) -> float:
        """Return the time of `num_tokens` of prefill and a step of `num_rows` in one pass over the weights.

        A row is a token of prefill more, and what it costs beside the weights in a step: its attention. It is never
        faster than the step alone, which has to read the weights as well.
        """
        both_us = self.prefill_us(num_tokens + num_rows) + self.step_row_us * num_rows
        return max(both_us, self.step_us(num_rows))


@dataclass(frozen=True, slots=True)
class Profile:
    """A model on two machines. `logits_row_us` is output head and sampling of a row; each unit pays `unit_us`."""

    name: str
    num_layers: int
    head_layers: int
    tail_layers: int
    edge: LayerTimes
    cloud: LayerTimes
    logits_row_us: float
    unit_us: float
    token_bytes: int

    @property
    def body_layers(self) -> int:
        """Layers that the cloud runs."""
        return self.num_layers - self.head_layers - self.tail_layers

    def body_step_us(self, num_rows: int) -> float:
        """Return the time of a whole body for a step of `num_rows`."""
        return self.unit_us + self.body_layers * self.cloud.step_us(num_rows)

    def body_prefill_us(self, num_tokens: int) -> float:
        """Return the time of a whole body for `num_tokens` of prefill, uncut."""
        return self.unit_us + self.body_layers * self.cloud.prefill_us(num_tokens)


NPU = Profile(
    name="npu",
    num_layers=64,
    head_layers=1,
    tail_layers=1,
    edge=LayerTimes(120, 2.0, 160, 3.0),
    cloud=LayerTimes(450, 0.16, 120, 1.83),
    logits_row_us=6.0,
    unit_us=150,
    token_bytes=10_240,
)
"""An NPU of the kind that a 32-billion model runs on: a step of 200 rows 30 ms, 2,048 tokens of prefill 240 ms."""

PROFILES = {profile.name: profile for profile in (NPU,)}
