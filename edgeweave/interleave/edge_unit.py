"""The unit that runs on the edge now, and what is reported of it when it ends."""

from dataclasses import dataclass, field

from edgeweave.interleave.choices import EdgeView, EdgeWork
from edgeweave.interleave.edge_work import EdgeChunk, EdgeStep, Piece
from edgeweave.interleave.effects import Draw, EdgeEffect
from edgeweave.interleave.nouns import Rider, Row, Sample, Stage, UnitRan, count_tokens

_STAGES = {
    EdgeWork.HEAD: Stage.HEAD,
    EdgeWork.TAIL: Stage.TAIL,
    EdgeWork.TURNAROUND: Stage.TURNAROUND,
    EdgeWork.FUSED: Stage.FUSED_HEAD,
}


@dataclass(slots=True)
class EdgeUnit:
    """One unit. A turnaround is one unit of two runs: the tail of `back`, then the head of `next`.

    A head or tail is a `piece` of `chunk`; a fused unit is a turnaround with a piece of a head in its second run.
    `live` and `skipped` are of the run that is open, `after` holds what is done and told once the turnaround is over.
    """

    work: EdgeWork
    view: EdgeView
    plan: int
    chunk: EdgeChunk | None = None
    piece: Piece | None = None
    back: EdgeStep | None = None
    next: EdgeStep | None = None
    live: tuple[bool, ...] = ()
    draws: tuple[Draw, ...] = ()
    samples: tuple[Sample, ...] = ()
    num_skipped: int = 0
    skipped: tuple[Row, ...] = ()
    tail_us: int = 0
    sampling_us: int = 0
    after: list[EdgeEffect] = field(default_factory=list)

    @property
    def stage(self) -> Stage:
        """Part of the pipeline that the unit belongs to."""
        return _STAGES[self.work]

    def ran(self, *, begin_us: int, end_us: int) -> UnitRan:
        """Return the report of this unit."""
        step, came_back = self.back or self.next, self.back or (self.chunk if self.work is EdgeWork.TAIL else None)
        start, stop, rows = self._span(step)
        ready_us = came_back.returned_us if came_back is not None else None
        rider = self._rider(ready_us)
        return UnitRan(
            stage=self.stage,
            start=start,
            stop=stop,
            begin_us=begin_us,
            end_us=end_us,
            prefill_ready=self.view.head_ready,
            tail_ready=self.view.tail_ready,
            decode_ready=self.view.turnaround_ready,
            num_rows=len(rows) - len(self.skipped) + (rider.num_rows if rider is not None else 0),
            num_tokens=stop - start - count_tokens(self.skipped) + (rider.num_tokens if rider is not None else 0),
            plan=self.plan,
            chunk=self.chunk.task.chunk if self.chunk is not None else None,
            step=step.task.step if self.chunk is None and step is not None else None,
            num_skipped=self.num_skipped,
            prefill_run_us=self.view.prefill_run_us,
            decode_rows=self.view.decode_rows,
            ready_us=ready_us if rider is None else None,
            next_step=self.next.number if self.next is not None else None,
            tail_us=self.tail_us,
            sampling_us=self.sampling_us,
            rider=rider,
        )

    def _span(self, step: EdgeStep | None) -> tuple[int, int, tuple[Row, ...]]:
        """Return the tensor rows `[start, stop)` of the unit, and the token rows in them."""
        if self.piece is not None:
            return self.piece.start, self.piece.stop, self.piece.rows
        return (0, step.num_rows, step.task.rows) if step is not None else (0, 0, ())

    def _rider(self, ready_us: int | None) -> Rider | None:
        """Return the step of a fused unit: the one that came back, and the rows of the one that leaves."""
        if self.work is not EdgeWork.FUSED:
            return None
        step = self.back or self.next
        rows = self.next.task.rows if self.next is not None else ()
        return Rider(step.number if step is not None else None, len(rows), count_tokens(rows), ready_us)

    def skip(self, rows: tuple[Row, ...]) -> None:
        """Count the rows of a run that are not live."""
        self.skipped = tuple(row for row, is_live in zip(rows, self.live, strict=True) if not is_live)
        self.num_skipped += len(self.skipped)
