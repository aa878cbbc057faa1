"""What a mesh did over one interval: the difference of two states that `WatchMesh` told.

Knows sums, shares and rates. Does not know how a mesh is asked, nor how an answer is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from edgeweave.client import MeshState
from edgeweave.client.engine_use import EngineUse, engine_use
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Stage
from edgeweave.interleave.request_totals import RequestEnd
from edgeweave.interleave.totals import NOT_HIDDEN

CLOUD_STEPS = (Stage.STEP, Stage.FUSED_SEGMENT)
EDGE_STEPS = (Stage.TURNAROUND, Stage.FUSED_HEAD)
"""Units in which rows of a step came to the end of the body."""


@dataclass(frozen=True, slots=True)
class MeshInterval:
    """What a mesh did in `wall_us`, up to `state`; `engines` are those that the session has.

    `outside_us` is what chunks and steps answered in it had spent outside the cloud, `steps_us` the time in flight of
    its steps, all of them together.
    """

    state: MeshState
    wall_us: int
    engines: Mapping[Side, EngineUse]
    num_output_tokens: int
    num_prefill_tokens: int
    num_chunks: int
    num_steps: int
    num_preemptions: int
    outside_us: int
    steps_us: int
    ends: Mapping[RequestEnd, int]

    @property
    def hidden_share(self) -> float | None:
        """Share of the time outside the cloud that other work hid; `None` where nothing came from there."""
        cloud = self.engines.get(Side.CLOUD)
        if cloud is None or not self.outside_us:
            return None
        waited_us = sum(cloud.bubbles_us.get(cause, 0) for cause in NOT_HIDDEN)
        return max(0.0, 1.0 - waited_us / self.outside_us)

    @property
    def steps_in_flight(self) -> float:
        """Steps in flight, as a mean over the interval."""
        return self.steps_us / self.wall_us if self.wall_us else 0.0

    @property
    def rows_per_step(self) -> float | None:
        """Rows of a step, as a mean over those that ran; `None` without any."""
        side, stages = (Side.CLOUD, CLOUD_STEPS) if Side.CLOUD in self.engines else (Side.EDGE, EDGE_STEPS)
        engine = self.engines.get(side)
        steps = [entry for stage in stages for entry in engine.rows(stage).items()] if engine is not None else []
        num_steps = sum(unit.num_units for _, unit in steps)
        num_rows = sum(rows * unit.num_units for rows, unit in steps)
        return num_rows / num_steps if num_steps else None

    @property
    def up_bits_per_s(self) -> float:
        """Hidden states from site to cloud, on both lanes."""
        edge = self.engines.get(Side.EDGE)
        return 8e6 * edge.sent_bytes / edge.reported_us if edge is not None and edge.reported_us else 0.0

    @property
    def down_bits_per_s(self) -> float:
        """Hidden states from cloud to site, on both lanes."""
        edge = self.engines.get(Side.EDGE)
        return 8e6 * edge.received_bytes / edge.reported_us if edge is not None and edge.reported_us else 0.0

    def per_s(self, count: int) -> float:
        """Return how many of something there were each second."""
        return 1e6 * count / self.wall_us if self.wall_us else 0.0


def interval_between(before: MeshState, after: MeshState) -> MeshInterval:
    """Return what a mesh did between two states of one scheduler.

    Sums of a session that began in between count from its beginning; those of the one before are gone with it.
    """
    then = before if before.session == after.session and after.edge is not None else _without_session(before)
    engines = {
        side: engine_use(was, now)
        for side, was, now in ((Side.EDGE, then.edge, after.edge), (Side.CLOUD, then.cloud, after.cloud))
        if now is not None
    }
    return MeshInterval(
        state=after,
        wall_us=after.clock_us - then.clock_us,
        engines=engines,
        num_output_tokens=after.num_output_tokens - then.num_output_tokens,
        num_prefill_tokens=after.num_prefill_tokens - then.num_prefill_tokens,
        num_chunks=after.num_chunks_done - then.num_chunks_done,
        num_steps=after.num_steps_done - then.num_steps_done,
        num_preemptions=after.num_preemptions - then.num_preemptions,
        outside_us=max(0, after.outside_us - then.outside_us),
        steps_us=after.steps_us - then.steps_us,
        ends={end: number - then.ends.get(end, 0) for end, number in after.ends.items()},
    )


def engine_words(use: EngineUse | None) -> str:
    """Return in a word how an engine is known to do."""
    if use is None:
        return "absent"
    if not use.reported_us:
        return "no report"
    if not use.counted_us:
        return "one bubble"  # engines report between units, so it is no unit that is open
    return "idle" if use.idle_us == use.counted_us else "serves"


def _without_session(state: MeshState) -> MeshState:
    """Return `state` as if no session had begun."""
    return replace(
        state,
        edge=None,
        cloud=None,
        num_prefill_tokens=0,
        num_chunks_done=0,
        num_steps_done=0,
        outside_us=0,
        steps_us=0,
    )
