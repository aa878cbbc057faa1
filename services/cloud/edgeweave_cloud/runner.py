"""The cloud engine's session on the compute thread: hidden states in, body, hidden states out.

Knows hidden states and the body of the model. The core says what runs when.
"""

from typing import Any, Generic

from edgeweave.clock import Clock
from edgeweave.engine.arrival import Arrival
from edgeweave.engine.parts import CloudPart, HiddenT, UnitTime, live_rows, own_time
from edgeweave.engine.port import Port
from edgeweave.engine.runner import CoreRunner
from edgeweave.interleave.cloud_core import CloudCore
from edgeweave.interleave.effects import DropUnit, RunSegment, RunStep, SendFailure, SendResult, UnitEnded
from edgeweave.interleave.nouns import Lane
from edgeweave.wire.frames import Frame, UnitFailure


class CloudRunner(CoreRunner[CloudCore], Generic[HiddenT]):
    """Runs segments and steps. `hidden` holds [tokens, hidden] of each unit that is here."""

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

    def compute(self, effect: RunSegment | RunStep) -> UnitEnded:
        """Run one segment of a chunk, or the whole body for a step.

        Next: edgeweave_cloud.runner.CloudRunner.send
        """
        if isinstance(effect, RunSegment):
            unit, rows, layers = (Lane.PREFILL, effect.chunk.chunk), effect.chunk.rows, effect.segment
        else:
            unit, rows, layers = (Lane.DECODE, effect.step.step), effect.step.rows, effect.body
        live = live_rows(rows, effect.live)
        if live:
            hidden = self._model.live_of(self._hidden[unit], rows, effect.live)
            self._hidden[unit] = self._model.spread(self._model.run_segment(live, hidden, layers), rows, effect.live)
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
