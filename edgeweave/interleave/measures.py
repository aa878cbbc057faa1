"""What the scheduler has measured of a session: lines through reported times, that follow slow changes.

Knows times of body layers by tokens, of steps by rows, and of turnarounds. Rejects outliers: a unit that met a page
fault or a busy neighbour says nothing of the next one. Does not know what the times are used for.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.nouns import Segment, Stage, StepDone, Timeline, UnitRan

MEMORY = 64
"""A line forgets: observations count by about the last 64."""
MIN_OBSERVATIONS = 4
ROWS_MEMORY = 16
"""The rows of a step are averaged over about this many."""
OUTLIER = 4.0
"""A time this many times the expected one is not taken."""
LEAST_SPREAD = 0.05
"""Relative variance of what a time depends on below which its fixed part cannot be told from the rest."""
ASSUMED_FIXED_SHARE = 0.5


@dataclass(slots=True)
class Line:
    """`y = fixed + slope * x`, by least squares over what was seen lately; neither part is negative."""

    _weight: float = 0.0
    _x: float = 0.0
    _y: float = 0.0
    _xx: float = 0.0
    _xy: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether enough was seen to predict."""
        return self._weight >= MIN_OBSERVATIONS - 1

    def observe(self, x: float, y: float) -> None:
        """Take one observation, unless it is an outlier."""
        if self.is_known and y > OUTLIER * max(self.at(x), 1.0):
            return
        keep = 1.0 - 1.0 / MEMORY
        self._weight = self._weight * keep + 1.0
        self._x = self._x * keep + x
        self._y = self._y * keep + y
        self._xx = self._xx * keep + x * x
        self._xy = self._xy * keep + x * y

    def at(self, x: float) -> float:
        """Return the expected `y` at `x`."""
        fixed, slope = self._parts()
        return fixed + slope * x

    @property
    def fixed(self) -> float:
        """The part that does not depend on `x`."""
        return self._parts()[0]

    def _parts(self) -> tuple[float, float]:
        if not self._weight:
            return 0.0, 0.0
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        variance = self._xx / self._weight - mean_x * mean_x
        if mean_x <= 0 or variance <= LEAST_SPREAD * mean_x * mean_x:
            fixed = ASSUMED_FIXED_SHARE * mean_y
            return fixed, (mean_y - fixed) / mean_x if mean_x > 0 else 0.0
        slope = max(0.0, (self._xy / self._weight - mean_x * mean_y) / variance)
        fixed = mean_y - slope * mean_x
        return (fixed, slope) if fixed >= 0 else (0.0, mean_y / mean_x)


@dataclass(slots=True)
class Measures:
    """The measured times of one session, in microseconds; `step_rows` are those of a step on average."""

    body: Segment
    token_bytes: int = 0
    rtt_us: int = 0
    lane_bytes_per_us: float = 0.0
    layer_by_tokens: Line = field(default_factory=Line)
    step_by_rows: Line = field(default_factory=Line)
    turnaround_us: float = 0.0
    step_rows: float = 0.0

    @property
    def are_complete(self) -> bool:
        """Whether enough was measured to set a plan by."""
        return self.layer_by_tokens.is_known and self.step_by_rows.is_known and self.decode_return_us > 0

    def take_timeline(self, timeline: Timeline) -> None:
        """Take the units that an engine ran."""
        for ran in timeline.ran:
            self._take(ran)

    def take_step(self, done: StepDone) -> None:
        """Take the turnaround of a step; one that is far off, a piece of head in front of it, counts little."""
        self.turnaround_us = _moved(self.turnaround_us, done.turnaround_us)
        self.step_rows += (len(done.samples) - self.step_rows) / ROWS_MEMORY

    @property
    def decode_return_us(self) -> int:
        """Expected time from the end of a step in the cloud to the next one's arrival (L15); 0: not known yet."""
        return round(self.rtt_us + self.turnaround_us) if self.rtt_us and self.turnaround_us else 0

    def handoff_us(self, chunk_tokens: int) -> float:
        """Return the time from the end of a chunk in the cloud to the arrival of one that waited for it."""
        bytes_us = chunk_tokens * self.token_bytes / self.lane_bytes_per_us if self.lane_bytes_per_us else 0.0
        return self.rtt_us + self.turnaround_us + 2 * bytes_us

    def prefill_us(self, num_tokens: int, *, chunk_tokens: int) -> float:
        """Return the time of the whole body for `num_tokens` of prefill in chunks of `chunk_tokens`."""
        per_chunk = self.layer_by_tokens.at(max(1, chunk_tokens)) * self.body.num_layers
        return per_chunk * num_tokens / max(1, chunk_tokens)

    def _take(self, ran: UnitRan) -> None:
        took_us = ran.end_us - ran.begin_us
        if ran.stage is Stage.SEGMENT and ran.num_tokens:
            self.layer_by_tokens.observe(ran.num_tokens, took_us / (ran.stop - ran.start))
        elif ran.stage is Stage.STEP and ran.num_rows:
            self.step_by_rows.observe(ran.num_rows, took_us)


def _moved(mean: float, seen: float) -> float:
    return seen if not mean else mean + (min(seen, OUTLIER * mean) - mean) / 8
