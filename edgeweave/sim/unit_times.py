"""How long a unit takes on the hardware of a profile.

The simulator and emulated engines ask here, so that they agree to the microsecond. Knows what a core asks its engine
to run; does not know who waits for it.
"""

from edgeweave.interleave.effects import RunHead, RunSegment, RunStep, RunTail
from edgeweave.interleave.nouns import Lane
from edgeweave.sim.profile import LayerTimes, Profile


def edge_unit_us(profile: Profile, effect: RunHead | RunTail, *, is_centralized: bool) -> int:
    """Return the time of a piece of a head, or of a tail with its draws; at least 1.

    Centralized, one engine on the cloud's hardware runs all layers in the head and none in the tail.
    """
    num_layers, times = _edge_layers(profile, is_head=isinstance(effect, RunHead), is_centralized=is_centralized)
    num_tokens = effect.row_stop - effect.row_start
    layer_us = times.step_us(num_tokens) if effect.lane is Lane.DECODE else times.prefill_us(num_tokens)
    draws_us = len(effect.draws) * profile.logits_row_us if isinstance(effect, RunTail) else 0.0
    return max(1, round(profile.unit_us + num_layers * layer_us + draws_us))


def cloud_unit_us(profile: Profile, effect: RunSegment | RunStep) -> int:
    """Return the time of a segment of a chunk, or of the body for a step; at least 1."""
    if isinstance(effect, RunStep):
        work_us = effect.body.num_layers * profile.cloud.step_us(effect.step.num_tokens)
    else:
        work_us = effect.segment.num_layers * profile.cloud.prefill_us(effect.chunk.num_tokens)
    return max(1, round(profile.unit_us + work_us))


def _edge_layers(profile: Profile, *, is_head: bool, is_centralized: bool) -> tuple[int, LayerTimes]:
    if is_centralized:
        return (profile.num_layers if is_head else 0), profile.cloud
    return (profile.head_layers if is_head else profile.tail_layers), profile.edge
