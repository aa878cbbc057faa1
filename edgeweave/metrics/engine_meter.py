"""Counts where the time of one engine goes, from its reports: for the scheduler, and for the engine itself.

Knows units and bubbles. Bubbles are told apart by the kind of unit that ended them, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from edgeweave.interleave.nouns import BubbleCause, Stage, Timeline
from edgeweave.metrics.histogram import Histogram
from edgeweave.metrics.metric import Metric


class BubbleKind(Enum):
    """What ended a bubble. Values are those of the label `kind`."""

    PREFILL = "prefill"
    DECODE = "decode"
    NONE = "none"
    """No unit: the last sequence was released, or the session broke."""


_PREFILL_STAGES = (Stage.HEAD, Stage.SEGMENT, Stage.TAIL)
_STEP_STAGES = (Stage.STEP, Stage.TURNAROUND, Stage.FUSED_SEGMENT, Stage.FUSED_HEAD)
_ANY_UNIT = (BubbleKind.PREFILL, BubbleKind.DECODE)
_KINDS_OF_CAUSE = {
    BubbleCause.GRACE: _ANY_UNIT,
    BubbleCause.AWAIT_TASK: (*_ANY_UNIT, BubbleKind.NONE),
    BubbleCause.AWAIT_DECODE_HIDDEN: (BubbleKind.DECODE,),
    BubbleCause.AWAIT_PREFILL_HIDDEN: (BubbleKind.PREFILL,),
    BubbleCause.LINK: _ANY_UNIT,
    BubbleCause.LOST: (BubbleKind.NONE,),
}
Bubbles = dict[tuple[BubbleKind, BubbleCause], int]


def _no_bubbles() -> Bubbles:
    """Return a 0 for whatever may come, so that Prometheus sees the first increase as well."""
    return {(kind, cause): 0 for cause, kinds in _KINDS_OF_CAUSE.items() for kind in kinds}


@dataclass(slots=True)
class EngineMeter:
    """Sums of one engine over all its sessions, in microseconds, rows and bytes.

    `unit_time` and `rows` are the metrics of the two histograms.
    """

    unit_time: Metric
    rows: Metric
    busy_us: int = 0
    idle_us: int = 0
    num_skipped_rows: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    inside_us: int = 0
    bubbles_us: Bubbles = field(default_factory=_no_bubbles)
    units: dict[Stage, Histogram] = field(default_factory=dict)
    step_rows: Histogram = field(init=False)

    def __post_init__(self) -> None:
        """Begin with an empty histogram."""
        self.step_rows = Histogram(self.rows)

    def take(self, timeline: Timeline) -> None:
        """Count one report."""
        for ran in timeline.ran:
            took_us = ran.end_us - ran.begin_us
            self.busy_us += took_us
            self.num_skipped_rows += ran.num_skipped
            self._unit_times(ran.stage).observe(took_us)
            if ran.stage in _STEP_STAGES:
                self.step_rows.observe(ran.step_part.num_rows)
        for kind, cause, length_us in _bubbles_of(timeline):
            self.bubbles_us[kind, cause] = self.bubbles_us.get((kind, cause), 0) + length_us
        self.idle_us += timeline.idle_us
        self.received_bytes += timeline.received_bytes
        self.sent_bytes += timeline.sent_bytes
        self.inside_us += timeline.inside_us

    def _unit_times(self, stage: Stage) -> Histogram:
        times = self.units.get(stage)
        if times is None:
            times = self.units[stage] = Histogram(self.unit_time)
        return times


def _bubbles_of(timeline: Timeline) -> Iterator[tuple[BubbleKind, BubbleCause, int]]:
    """Yield kind, cause and length of each bubble: a unit that begins at its end ended it and what led to it.

    A fused unit is of both kinds. Its bubble was one of decode, unless hidden states of prefill were awaited.
    """
    ended_by = {
        ran.begin_us: BubbleKind.PREFILL if ran.stage in _PREFILL_STAGES else BubbleKind.DECODE for ran in timeline.ran
    }
    for bubble in reversed(timeline.bubbles):
        kind = ended_by.get(bubble.end_us, BubbleKind.NONE)
        if bubble.cause is BubbleCause.AWAIT_PREFILL_HIDDEN:
            kind = BubbleKind.PREFILL
        ended_by[bubble.begin_us] = kind
        yield kind, bubble.cause, bubble.end_us - bubble.begin_us
