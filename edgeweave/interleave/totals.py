"""Sums of one session: where the time of each engine went, and how much of the round trips was hidden.

Knows the definition of the hidden share. Gets all numbers from reports of the engines.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import BubbleCause, Stage, Timeline, UnitRan

NOT_HIDDEN = (BubbleCause.AWAIT_DECODE_HIDDEN, BubbleCause.AWAIT_PREFILL_HIDDEN, BubbleCause.LINK)


@dataclass(slots=True)
class UnitTotal:
    """Units of one kind: how many ran, and their time in microseconds."""

    num_units: int = 0
    total_us: int = 0


@dataclass(slots=True)
class EngineTotals:
    """Sums of one engine, in microseconds, units, rows and bytes; `units` by stage and rows, of fused ones the step's.

    `clock_us` is the engine's clock at its last report. Up to there, what is in no sum is the open unit or bubble.
    """

    busy_us: int = 0
    idle_us: int = 0
    bubbles_us: dict[BubbleCause, int] = field(default_factory=dict)
    num_units: int = 0
    num_skipped_rows: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    clock_us: int = 0
    units: dict[tuple[Stage, int], UnitTotal] = field(default_factory=dict)

    def add(self, timeline: Timeline) -> None:
        """Add one report."""
        self.busy_us += sum(ran.end_us - ran.begin_us for ran in timeline.ran)
        self.num_units += len(timeline.ran)
        self.num_skipped_rows += sum(ran.num_skipped for ran in timeline.ran)
        self.idle_us += timeline.idle_us
        self.received_bytes += timeline.received_bytes
        self.sent_bytes += timeline.sent_bytes
        self.clock_us = timeline.clock_us
        for bubble in timeline.bubbles:
            length_us = bubble.end_us - bubble.begin_us
            self.bubbles_us[bubble.cause] = self.bubbles_us.get(bubble.cause, 0) + length_us
        for ran in timeline.ran:
            self._add_unit(ran)

    def _add_unit(self, ran: UnitRan) -> None:
        total = self.units.setdefault((ran.stage, ran.step_part.num_rows), UnitTotal())
        total.num_units += 1
        total.total_us += ran.end_us - ran.begin_us


@dataclass(slots=True)
class SessionTotals:
    """Sums of one session. `outside_us` is what chunks and steps spent outside the cloud.

    `steps_us` is the time of all steps from leaving the edge to being ready to leave again: for every step in flight it
    grows by a second each second.
    """

    engines: dict[Side, EngineTotals] = field(default_factory=lambda: {side: EngineTotals() for side in Side})
    away_us: int = 0
    steps_us: int = 0
    inside_us: int = 0
    num_chunks_done: int = 0
    num_steps_done: int = 0
    num_prefill_tokens: int = 0

    def add(self, timeline: Timeline, *, side: Side) -> None:
        """Add one report of an engine."""
        self.engines[side].add(timeline)
        self.inside_us += timeline.inside_us

    @property
    def outside_us(self) -> int:
        """Time that answered work spent on the link and at the edge between two visits to the cloud."""
        return max(0, self.away_us - self.inside_us)

    @property
    def hidden_share(self) -> float:
        """Share of the time outside the cloud in which the cloud had other work: 1 - bubbles that wait / outside."""
        bubbles = self.engines[Side.CLOUD].bubbles_us
        waited_us = sum(bubbles.get(cause, 0) for cause in NOT_HIDDEN)
        return max(0.0, 1.0 - waited_us / self.outside_us) if self.outside_us else 0.0
