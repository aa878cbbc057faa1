"""The edge engine's session on the compute thread: tokens in, head, tail, sampled tokens out.

Knows hidden states, head, tail and sampler. The core says what runs when, and which rows a step has.
"""

from typing import Any, Generic

from edgeweave.clock import Clock
from edgeweave.engine.arrival import Arrival
from edgeweave.engine.parts import EdgePart, HiddenT, UnitTime, own_time
from edgeweave.engine.port import Port
from edgeweave.engine.runner import CoreRunner
from edgeweave.interleave.edge_core import EdgeCore
from edgeweave.interleave.effects import DropUnit, EdgeRun, RunFusedHead, RunHead, RunTail, SendPiece, UnitEnded
from edgeweave.interleave.nouns import Lane
from edgeweave.interleave.rows import live_rows
from edgeweave.wire.frames import Frame


class EdgeRunner(CoreRunner[EdgeCore], Generic[HiddenT]):
    """Runs heads, tails and turnarounds.

    `_returned` holds [tokens, hidden] of units that came back; `_leaving` pieces that are about to be sent. An engine
    that holds all layers puts the output of the head where what comes back would be.
    """

    def __init__(
        self, core: EdgeCore, *, model: EdgePart[HiddenT], port: Port, clock: Clock, unit_time: UnitTime = own_time
    ) -> None:
        super().__init__(core, port=port, clock=clock, unit_time=unit_time)
        self._model = model
        self._returned: dict[tuple[Lane, int], HiddenT] = {}
        self._leaving: dict[tuple[Lane, int], HiddenT] = {}
        self._sent_us: dict[tuple[Lane, int], int] = {}

    def take(self, event: Any) -> None:
        """Give the core a task, or a frame; with the last frame of a unit comes its hidden state."""
        if not isinstance(event, Arrival):
            super().take(event)
            return
        if event.payload is not None:
            unit = (event.frame.lane, event.frame.unit)
            self._returned[unit] = self._model.hidden_from(event.payload, event.frame.num_rows)
        super().take(event.frame)

    def compute(self, effect: EdgeRun) -> UnitEnded:
        """Run a piece of a head, with or without a step in it, or of a tail with its draws."""
        match effect:
            case RunTail():
                return self.run_tail(effect)
            case RunHead():
                self.run_head(effect)
            case RunFusedHead():
                self._run_fused(effect)
        return UnitEnded()

    def run_head(self, effect: RunHead) -> None:
        """Embed the tokens of a piece and run the head over them: [row_stop - row_start, hidden].

        Next: edgeweave_edge.runner.EdgeRunner.send
        """
        self._put(effect, self._head_of(effect))

    def run_tail(self, effect: RunTail) -> UnitEnded:
        """Run the tail over rows that are back, and draw the tokens that are asked for.

        Next: edgeweave_scheduler.driver.Driver.answer
        """
        live = live_rows(effect.rows, effect.live)
        if not live:
            return UnitEnded()
        back = self._returned[effect.lane, effect.unit][effect.row_start : effect.row_stop]
        hidden = self._model.live_of(back, effect.rows, effect.live)
        place = {row: index for index, row in enumerate(live)}
        final = [place[effect.rows[draw.row]] for draw in effect.draws]
        logits = self._model.run_tail(live, hidden, final=final)
        samplings, indices = [d.sampling for d in effect.draws], [d.index for d in effect.draws]
        begin_us = self.clock.now_us()
        token_ids = tuple(self._model.sample(logits, samplings, indices))
        return UnitEnded(token_ids, sampling_us=self.clock.now_us() - begin_us)

    def send(self, effect: SendPiece) -> None:
        """Send a piece of a unit up its lane, while the next piece is computed.

        Next: edgeweave_cloud.runner.CloudRunner.compute
        """
        unit = (effect.lane, effect.unit)
        sent_us = self._sent_us.setdefault(unit, self.clock.now_us())
        if effect.row_stop == effect.num_rows:
            del self._sent_us[unit]
        frame = Frame(
            effect.unit,
            row_start=effect.row_start,
            num_rows=effect.num_rows,
            dtype=self._model.dtype,
            sent_us=sent_us,
            rows=effect.rows,
        )
        self.port.send(effect.lane, frame, self._model.payload_of(self._leaving.pop(unit)))

    def forget(self, effect: DropUnit) -> None:
        """Forget a unit's hidden state."""
        unit = (effect.lane, effect.unit)
        self._returned.pop(unit, None)
        self._leaving.pop(unit, None)
        self._sent_us.pop(unit, None)

    def free(self, sequences: tuple[int, ...]) -> None:
        """Free KV."""
        self._model.free(sequences)

    def close(self) -> None:
        """Free everything of the session."""
        self._returned.clear()
        self._leaving.clear()
        self._model.free_all()

    def _run_fused(self, effect: RunFusedHead) -> None:
        """Run the head over the tokens of a piece and of a step in one pass."""
        pieces = [piece for piece in (effect.piece, effect.step) if any(piece.live)]
        rows = [row for piece in pieces for row in live_rows(piece.rows, piece.live)]
        computed = self._model.run_head(rows, [token for piece in pieces for token in piece.token_ids])
        start = 0
        for piece in pieces:
            stop = start + len(piece.token_ids)
            self._put(piece, self._model.spread(computed[start:stop], piece.rows, piece.live))
            start = stop
        if effect.piece not in pieces:
            self.run_head(effect.piece)

    def _put(self, effect: RunHead, piece: HiddenT) -> None:
        """Put what a head gave where it leaves from."""
        if self.core.holds_body:
            self._keep(effect, piece)
        else:
            self._leaving[effect.lane, effect.unit] = piece

    def _head_of(self, effect: RunHead) -> HiddenT:
        live = live_rows(effect.rows, effect.live)
        if not live:
            return self._model.zeros(effect.row_stop - effect.row_start)
        return self._model.spread(self._model.run_head(live, effect.token_ids), effect.rows, effect.live)

    def _keep(self, effect: RunHead, piece: HiddenT) -> None:
        """Put a piece where what comes back would be: this engine holds all layers."""
        unit = (effect.lane, effect.unit)
        if len(piece) == effect.num_rows:
            self._returned[unit] = piece
            return
        if unit not in self._returned:
            self._returned[unit] = self._model.zeros(effect.num_rows)
        self._returned[unit][effect.row_start : effect.row_stop] = piece
