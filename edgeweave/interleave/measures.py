"""What the scheduler has measured of a session: lines through reported times, that follow slow changes.

Knows times of body layers by tokens, of steps by rows, and of turnarounds. Rejects outliers: a unit that met a page
fault or a busy neighbour says nothing of the next one. Does not know what the times are used for.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.curve import OUTLIER, Curve, Line
from edgeweave.interleave.nouns import Segment, Stage, StepDone, Timeline, UnitRan
from edgeweave.interleave.round_trips import RoundTrips

LEAST_SHARE = 0.25
"""Of a step that ran in parts, one with this share of the layers says what the whole takes."""


@dataclass(slots=True)
class Measures:
    """The measured times of one session, in microseconds.

    Where the edge holds all layers (`holds_body`) its own units are those of the body, a layer being the whole model.
    Fused units are measured apart, by what they take beside prefill of as many tokens. `chunk_tokens` are those of a
    chunk lately.
    """

    body: Segment
    holds_body: bool = False
    token_bytes: int = 0
    trips: RoundTrips = field(default_factory=RoundTrips)
    lane_bytes_per_us: float = 0.0
    layer_by_tokens: Line = field(default_factory=Line)
    step_by_rows: Curve = field(default_factory=Curve)
    turnaround_us: float = 0.0
    chunk_tokens: float = 0.0
    _fused_ratio: float = 0.0

    @property
    def are_known(self) -> bool:
        """Whether enough was measured to set a plan by; a load of prompts alone has no steps to measure."""
        return self.layer_by_tokens.is_known

    @property
    def has_steps(self) -> bool:
        """Whether steps were measured as well."""
        return self.step_by_rows.is_known and (self.holds_body or self.decode_return_us > 0)

    def take_timeline(self, timeline: Timeline) -> None:
        """Take the units that an engine ran."""
        for ran in timeline.ran:
            self._take(ran)

    def take_step(self, done: StepDone) -> None:
        """Take the turnaround of a step; one that is far off, a piece of head in front of it, counts little."""
        self.turnaround_us = _moved(self.turnaround_us, done.turnaround_us)
        self.trips.take_away(done.step, done.away_us)

    def take_chunk(self, num_tokens: int) -> None:
        """Take the size of a chunk that is issued."""
        self.chunk_tokens = _moved(self.chunk_tokens, num_tokens)

    @property
    def decode_return_us(self) -> int:
        """Expected time from the end of a step in the cloud to the next one's arrival (L15); 0: none, or not known."""
        rtt_us = self.trips.shortest_us
        is_known = rtt_us and self.turnaround_us and not self.holds_body
        return round(rtt_us + self.turnaround_us) if is_known else 0

    def handoff_us(self, chunk_tokens: int) -> float:
        """Return the time from the end of a chunk in the cloud to the arrival of one that waited for it."""
        bytes_us = chunk_tokens * self.token_bytes / self.lane_bytes_per_us if self.lane_bytes_per_us else 0.0
        return self.trips.shortest_us + self.turnaround_us + 2 * bytes_us

    def prefill_us(self, num_tokens: float, *, chunk_tokens: int) -> float:
        """Return the time of the whole body for `num_tokens` of prefill in chunks of `chunk_tokens`."""
        per_chunk = self.layer_by_tokens.at(max(1, chunk_tokens)) * max(1, self.body.num_layers)
        return per_chunk * num_tokens / max(1, chunk_tokens)

    def fused_us(self, chunk_tokens: int, *, num_rows: int) -> float:
        """Return the time of the whole body for a chunk and a step together.

        As much as for so many tokens of prefill, and no less than for the step, by what such units took beside that.
        """
        num_layers = max(1, self.body.num_layers)
        return self._fused_layer_us(chunk_tokens + num_rows, num_rows) * num_layers * (self._fused_ratio or 1.0)

    def _fused_layer_us(self, num_tokens: int, num_rows: int) -> float:
        step_layer_us = self.step_by_rows.at(num_rows) / max(1, self.body.num_layers)
        return max(self.layer_by_tokens.at(num_tokens), step_layer_us)

    def _take_fused(self, ran: UnitRan, num_layers: int) -> None:
        expected_us = self._fused_layer_us(ran.num_tokens, ran.step_part.num_rows) * num_layers
        if self.layer_by_tokens.is_known and expected_us > 0:
            self._fused_ratio = _moved(self._fused_ratio, (ran.end_us - ran.begin_us - ran.tail_us) / expected_us)

    def _take(self, ran: UnitRan) -> None:
        if not ran.num_tokens:
            return
        took_us = ran.end_us - ran.begin_us
        num_layers = 1 if self.holds_body else ran.stop - ran.start
        match ran.stage:
            case Stage.HEAD if self.holds_body:
                self.layer_by_tokens.observe(ran.num_tokens, took_us)
            case Stage.SEGMENT:
                # A unit has a cost of its own: a short piece says less of what layers take than a long one.
                weight = num_layers / max(num_layers, self.body.num_layers)
                self.layer_by_tokens.observe(ran.num_tokens, took_us / num_layers, weight=weight)
            case Stage.TURNAROUND if self.holds_body:
                self.step_by_rows.observe(ran.num_rows, took_us)
            case Stage.STEP | Stage.BOARDING:
                self._take_step_part(ran, num_layers)
            case Stage.FUSED_SEGMENT | Stage.FUSED_HEAD:
                self._take_fused(ran, num_layers)
        step = ran.step_part.step
        if step is not None and ran.stage in (Stage.STEP, Stage.BOARDING, Stage.FUSED_SEGMENT):
            self.trips.take_inside(step, took_us, is_over=ran.stop == self.body.stop)

    def _take_step_part(self, ran: UnitRan, num_layers: int) -> None:
        """Take a step, or a part of one that rode in a chunk for the rest."""
        share = num_layers / max(num_layers, self.body.num_layers)
        if share >= LEAST_SHARE:
            self.step_by_rows.observe(ran.num_rows, (ran.end_us - ran.begin_us) / share)


def _moved(mean: float, seen: float) -> float:
    return seen if not mean else mean + (min(seen, OUTLIER * mean) - mean) / 8
