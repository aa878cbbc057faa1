"""The unit that runs in the cloud now, and what is reported of it when it ends."""

from dataclasses import dataclass

from edgeweave.interleave.choices import CloudView, Work
from edgeweave.interleave.effects import CloudRun, RunFused, RunSegment, RunStep
from edgeweave.interleave.nouns import Rider, Row, Segment, Stage, UnitRan, count_tokens
from edgeweave.interleave.rows import live_rows


@dataclass(frozen=True, slots=True)
class CloudUnit:
    """One unit: what was chosen, from which view, and when what it works on was here."""

    work: Work
    effect: CloudRun
    view: CloudView
    plan: int
    body: Segment
    chunk_ready_us: int | None = None
    step_ready_us: int | None = None

    @property
    def segment(self) -> RunSegment | None:
        """The part of a chunk in it, if any."""
        if isinstance(self.effect, RunFused):
            return self.effect.chunk
        return self.effect if isinstance(self.effect, RunSegment) else None

    @property
    def step(self) -> RunStep | None:
        """The part of a step in it, if any."""
        if isinstance(self.effect, RunFused):
            return self.effect.step
        return self.effect if isinstance(self.effect, RunStep) else None

    def ran(self, *, begin_us: int, end_us: int) -> UnitRan:
        """Return the report of this unit."""
        segment, step = self.segment, self.step
        chunk_rows = live_rows(segment.chunk.rows, segment.live) if segment is not None else []
        step_rows = live_rows(step.step.rows, step.live) if step is not None else []
        ran_rows = chunk_rows + step_rows
        layers = self._layers
        return UnitRan(
            stage=self._stage,
            start=layers.start,
            stop=layers.stop,
            begin_us=begin_us,
            end_us=end_us,
            prefill_ready=self.view.prefill_ready,
            decode_ready=self.view.decode_ready,
            num_rows=len(ran_rows),
            num_tokens=count_tokens(ran_rows),
            plan=self.plan,
            chunk=segment.chunk.chunk if segment is not None else None,
            step=step.step.step if segment is None and step is not None else None,
            num_skipped=self._num_rows - len(ran_rows),
            decode_due_us=self.view.decode_due_us,
            prefill_run_us=self.view.prefill_run_us,
            decode_rows=self.view.decode_rows,
            ready_us=self.chunk_ready_us if segment is not None else self.step_ready_us,
            rider=self._rider(step_rows),
            ride_layers=self.view.ride_layers,
            step_layers=self.view.step_layers,
        )

    @property
    def _stage(self) -> Stage:
        match self.effect:
            case RunSegment():
                return Stage.SEGMENT
            case RunFused():
                return Stage.FUSED_SEGMENT
            case RunStep():
                return Stage.STEP if self.effect.layers.stop == self.body.stop else Stage.BOARDING

    @property
    def _layers(self) -> Segment:
        """Layers that the unit runs."""
        match self.effect:
            case RunSegment():
                return self.effect.segment
            case RunStep():
                return self.effect.layers
            case RunFused():
                return self.effect.chunk.segment

    @property
    def _num_rows(self) -> int:
        """Rows of the unit, skipped ones too."""
        segment, step = self.segment, self.step
        return (len(segment.live) if segment is not None else 0) + (len(step.live) if step is not None else 0)

    def _rider(self, rows: list[Row]) -> Rider | None:
        if not isinstance(self.effect, RunFused):
            return None
        return Rider(self.effect.step.step.step, len(rows), count_tokens(rows), self.step_ready_us)
