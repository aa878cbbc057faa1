"""The cloud engine's session on the compute thread: hidden states in, body, hidden states out.

Knows hidden states and the body of the model. The core says what runs when.
"""

from dataclasses import dataclass
from typing import Any, Generic

from edgeweave.clock import Clock
from edgeweave.engine.arrival import Arrival
from edgeweave.engine.parts import CloudPart, HiddenT, UnitTime, own_time
from edgeweave.engine.port import Port
from edgeweave.engine.runner import CoreRunner
from edgeweave.interleave.cloud_core import CloudCore
from edgeweave.interleave.effects import (
    CloudRun,
    DropUnit,
    RunFused,
    RunSegment,
    RunStep,
    SendFailure,
    SendResult,
    UnitEnded,
)
from edgeweave.interleave.nouns import Lane, Row, Segment
from edgeweave.interleave.rows import live_rows
from edgeweave.wire.frames import Frame, UnitFailure


@dataclass(frozen=True, slots=True)
class _Part:
    """What a unit runs of a chunk or of a step."""

    unit: tuple[Lane, int]
    rows: tuple[Row, ...]
    live: tuple[bool, ...]
    live_rows: list[Row]


class CloudRunner(CoreRunner[CloudCore], Generic[HiddenT]):
    """Runs segments, steps, and both in one. `hidden` holds [tokens, hidden] of each unit that is here."""

    def __init__(
        self, core: CloudCore, *, model: CloudPart[HiddenT], port: Port, clock: Clock, unit_time: UnitTime = own_time
    ) -> None:
        super().__init__(core, port=port, clock=clock, unit_time=unit_time)
        self._model = model
        self._hidden: dict[tuple[Lane, int], HiddenT] = {}

    def take(self, event: Any) -> None:
        """Give the core a task, or a frame; with the last frame of a unit comes its hidden state."""
        if not isinstance(event, Arrival):
            super().take(event)
            return
        if event.payload is not None:
            unit = (event.frame.lane, event.frame.unit)
            self._hidden[unit] = self._model.hidden_from(event.payload, event.frame.num_rows)
        super().take(event.frame)

    def wake_us(self) -> int | None:
        """Return when a wait for decode is over."""
        return self.core.wake_us(now_us=self.clock.now_us())

    def compute(self, effect: CloudRun) -> UnitEnded:
        """Run layers of the body for a chunk, for a step, or for the rows of both together.

        Next: edgeweave_cloud.runner.CloudRunner.send
        """
        match effect:
            case RunSegment():
                self._pass(_part_of(effect), layers=effect.segment)
            case RunStep():
                self._pass(_part_of(effect), layers=effect.layers)
            case RunFused():
                self._pass(_part_of(effect.chunk), _part_of(effect.step), layers=effect.chunk.segment)
        return UnitEnded()

    def send(self, effect: SendResult | SendFailure) -> None:
        """Send the result of a unit, or why there is none, down its lane.

        Next: edgeweave_edge.runner.EdgeRunner.run_tail
        """
        hidden = self._hidden.pop((effect.lane, effect.unit))
        now_us = self.clock.now_us()
        if isinstance(effect, SendFailure):
            failure = UnitFailure(effect.sequences, effect.code)
            self.port.send(effect.lane, Frame(effect.unit, sent_us=now_us, failure=failure), b"")
            return
        result = self._model.spread(self._model.live_of(hidden, effect.rows, effect.live), effect.rows, effect.live)
        frame = Frame(effect.unit, num_rows=len(result), dtype=self._model.dtype, sent_us=now_us)
        self.port.send(effect.lane, frame, self._model.payload_of(result))

    def forget(self, effect: DropUnit) -> None:
        """Forget a unit's hidden state."""
        self._hidden.pop((effect.lane, effect.unit), None)

    def free(self, sequences: tuple[int, ...]) -> None:
        """Free KV."""
        self._model.free(sequences)

    def close(self) -> None:
        """Free everything of the session."""
        self._hidden.clear()
        self._model.free_all()

    def _pass(self, *parts: _Part, layers: Segment) -> None:
        """Run layers over the live rows of one unit or of several in one pass, and stage what comes out."""
        parts = tuple(part for part in parts if part.live_rows)
        if not parts:
            return
        model = self._model
        hidden = [model.live_of(self._hidden[part.unit], part.rows, part.live) for part in parts]
        rows = [row for part in parts for row in part.live_rows]
        computed = model.run_segment(rows, hidden[0] if len(hidden) == 1 else model.join(hidden), layers)
        start = 0
        for part, staged in zip(parts, hidden, strict=True):
            stop = start + len(staged)
            mine = computed if len(parts) == 1 else computed[start:stop]
            self._hidden[part.unit] = model.spread(mine, part.rows, part.live)
            start = stop


def _part_of(effect: RunSegment | RunStep) -> _Part:
    if isinstance(effect, RunSegment):
        unit, rows = (Lane.PREFILL, effect.chunk.chunk), effect.chunk.rows
    else:
        unit, rows = (Lane.DECODE, effect.step.step), effect.step.rows
    return _Part(unit, rows, effect.live, live_rows(rows, effect.live))
