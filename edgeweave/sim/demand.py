"""What a load asks of cloud, site and link, as sums over its requests.

Knows tokens, chunks and full batches of a model on given hardware. Does not know the distance, nor the order of work:
every step is taken to be full and every prompt to be cut no more than it must be, which no order of work beats.
"""

from dataclasses import dataclass

from edgeweave.interleave.limits import Limits
from edgeweave.sim.load import Load
from edgeweave.sim.profile import Profile


@dataclass(frozen=True, slots=True)
class Demand:
    """A load on a profile. `num_open` requests decode at once at most; times are microseconds of one engine."""

    profile: Profile
    num_requests: int
    num_prompt_tokens: int
    num_chunks: int
    num_decode_tokens: int
    num_open: int
    max_batch_size: int

    @classmethod
    def of(cls, load: Load, *, profile: Profile, limits: Limits) -> "Demand":
        """Return the sums of `load`; its first output tokens come out of prefill, all others out of steps."""
        prompts = [arrival.num_prompt_tokens for arrival in load.arrivals]
        num_decoding = sum(arrival.num_output_tokens > 1 for arrival in load.arrivals)
        return cls(
            profile=profile,
            num_requests=len(prompts),
            num_prompt_tokens=sum(prompts),
            num_chunks=sum(-(-num_tokens // limits.chunk_tokens) for num_tokens in prompts),
            num_decode_tokens=sum(arrival.num_output_tokens - 1 for arrival in load.arrivals),
            num_open=min(num_decoding, load.max_open or num_decoding),
            max_batch_size=limits.max_batch_size,
        )

    def group_rows(self, num_groups: int) -> int:
        """Return the rows of a step where so many decode groups share what decodes at once; a step has a limit."""
        return min(self.max_batch_size, -(-self.num_open // num_groups))

    def num_rounds(self, num_groups: int) -> float:
        """Return how often every group has a step until all is decoded, each as full as it gets."""
        num_rows = min(self.num_open, num_groups * self.group_rows(num_groups))
        return self.num_decode_tokens / num_rows if num_rows else 0.0

    def num_steps(self, *, num_groups: int = 1) -> float:
        """Return the decode steps of all groups together."""
        return num_groups * self.num_rounds(num_groups)

    @property
    def link_bytes(self) -> int:
        """Hidden states that cross the link each way: every prompt token, and a row of every step."""
        return (self.num_prompt_tokens + self.num_decode_tokens) * self.profile.token_bytes

    @property
    def centralized_us(self) -> float:
        """All work on one engine of the cloud's hardware."""
        profile = self.profile
        num_rows = self.group_rows(1)
        step_us = self._site_us(num_rows) + profile.num_layers * profile.cloud.step_us(num_rows)
        layer_us = self._prefill_layer_us(profile.cloud.prefill_fixed_us, profile.cloud.prefill_token_us)
        return self.num_steps() * step_us + profile.num_layers * layer_us + self._prefill_site_us

    @property
    def body_prefill_us(self) -> float:
        """The cloud's part of all prefill."""
        profile = self.profile
        layer_us = self._prefill_layer_us(profile.cloud.prefill_fixed_us, profile.cloud.prefill_token_us)
        return profile.body_layers * layer_us + self.num_chunks * profile.unit_us

    def body_us(self, *, num_groups: int) -> float:
        """Return all work of the cloud with so many decode groups."""
        steps_us = self.num_steps(num_groups=num_groups) * self.profile.body_step_us(self.group_rows(num_groups))
        return steps_us + self.body_prefill_us

    def edge_us(self, *, num_groups: int) -> float:
        """Return all work of the site's engine."""
        profile = self.profile
        layer_us = self._prefill_layer_us(profile.edge.prefill_fixed_us, profile.edge.prefill_token_us)
        num_layers = profile.head_layers + profile.tail_layers
        turnarounds_us = self.num_steps(num_groups=num_groups) * self.turnaround_us(self.group_rows(num_groups))
        return turnarounds_us + num_layers * layer_us + self._prefill_site_us

    def turnaround_us(self, num_rows: int) -> float:
        """Return the time of tail, sampling and head of a step, one after the other at the edge."""
        profile = self.profile
        num_layers = profile.head_layers + profile.tail_layers
        return self._site_us(num_rows) + num_layers * profile.edge.step_us(num_rows)

    def _site_us(self, num_rows: int) -> float:
        """What a step pays beside its layers: a unit before the body and one after it, and a draw for each row."""
        return 2 * self.profile.unit_us + num_rows * self.profile.logits_row_us

    @property
    def _prefill_site_us(self) -> float:
        return self.num_chunks * 2 * self.profile.unit_us + self.num_requests * self.profile.logits_row_us

    def _prefill_layer_us(self, fixed_us: float, token_us: float) -> float:
        return self.num_chunks * fixed_us + self.num_prompt_tokens * token_us
