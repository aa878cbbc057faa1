"""How long a unit takes on the hardware of a profile.

The simulator and emulated engines ask here, so that they agree to the microsecond. Knows what a core asks its engine
to run; does not know who waits for it.
"""

from edgeweave.interleave.effects import CloudRun, EdgeRun, RunFused, RunFusedHead, RunHead, RunStep, RunTail
from edgeweave.interleave.nouns import Lane
from edgeweave.sim.profile import LayerTimes, Profile


def edge_unit_us(profile: Profile, effect: EdgeRun, *, is_centralized: bool) -> int:
    """Return the time of a piece of a head, or of a tail with its draws; at least 1.

    Centralized, one engine on the cloud's hardware runs all layers in the head and none in the tail.
    """
    if isinstance(effect, RunFusedHead):
        num_layers, times = _edge_layers(profile, is_head=True, is_centralized=is_centralized)
        num_tokens = effect.piece.row_stop - effect.piece.row_start
        return _unit_us(profile, num_layers * times.fused_us(num_tokens, effect.step.num_rows))
    num_layers, times = _edge_layers(profile, is_head=isinstance(effect, RunHead), is_centralized=is_centralized)
    num_tokens = effect.row_stop - effect.row_start
    layer_us = times.step_us(num_tokens) if effect.lane is Lane.DECODE else times.prefill_us(num_tokens)
    draws_us = len(effect.draws) * profile.logits_row_us if isinstance(effect, RunTail) else 0.0
    return _unit_us(profile, num_layers * layer_us + draws_us)


def cloud_unit_us(profile: Profile, effect: CloudRun) -> int:
    """Return the time of layers of the body for a chunk, for a step, or for both together; at least 1."""
    times = profile.cloud
    if isinstance(effect, RunFused):
        num_layers, num_tokens = effect.chunk.segment.num_layers, effect.chunk.chunk.num_tokens
        return _unit_us(profile, num_layers * times.fused_us(num_tokens, effect.step.step.num_tokens))
    if isinstance(effect, RunStep):
        return _unit_us(profile, effect.layers.num_layers * times.step_us(effect.step.num_tokens))
    return _unit_us(profile, effect.segment.num_layers * times.prefill_us(effect.chunk.num_tokens))


def _unit_us(profile: Profile, work_us: float) -> int:
    return max(1, round(profile.unit_us + work_us))


def _edge_layers(profile: Profile, *, is_head: bool, is_centralized: bool) -> tuple[int, LayerTimes]:
    if is_centralized:
        return (profile.num_layers if is_head else 0), profile.cloud
    return (profile.head_layers if is_head else profile.tail_layers), profile.edge
