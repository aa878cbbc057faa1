"""Both engine shells with integers in place of tensors: they stage frames, run units and send results.

A shell holds nothing but values, so that a whole mesh can be copied. A unit runs when `end_unit` is called: until
then it is open, and anything may arrive. What a shell sends lies in its `outbox`, by the name of the stream.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from edgeweave.interleave.cloud_core import CloudCore, CloudEvent
from edgeweave.interleave.edge_core import EdgeCore, EdgeEvent
from edgeweave.interleave.effects import (
    CloudEffect,
    CloudRun,
    DropUnit,
    EdgeEffect,
    EdgeRun,
    FrameArrived,
    FreeKv,
    RunFused,
    RunFusedHead,
    RunHead,
    RunSegment,
    RunStep,
    RunTail,
    SendFailure,
    SendPiece,
    SendResult,
    Tell,
    UnitEnded,
)
from edgeweave.interleave.nouns import ErrorCode, Lane, Row, Segment
from fakes.symbolic import VOCAB, SymbolicLayers

UP = {Lane.PREFILL: "up_p", Lane.DECODE: "up_d"}
DOWN = {Lane.PREFILL: "down_p", Lane.DECODE: "down_d"}

Values = list[int | None]
Staged = dict[tuple[Lane, int], Values]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it travels: what the core hears of, and the values that it does not see."""

    arrived: FrameArrived
    values: tuple[int | None, ...]


Outbox = list[tuple[str, object]]


@dataclass(slots=True)
class EdgeShell:
    """An edge engine."""

    core: EdgeCore
    head: SymbolicLayers
    tail: SymbolicLayers
    frame_rows: int
    staged: Staged = field(default_factory=dict)
    running: EdgeRun | None = None
    outbox: Outbox = field(default_factory=list)

    @property
    def layers(self) -> tuple[SymbolicLayers, ...]:
        """All layers of this side."""
        return self.head, self.tail

    def on(self, item: EdgeEvent | Frame, *, now_us: int) -> None:
        """Take a task or a frame."""
        event = stage(self.staged, item) if isinstance(item, Frame) else item
        self._carry_out(self.core.on(event, now_us=now_us), now_us)

    def poll(self, *, now_us: int) -> None:
        """Start what is ready."""
        while self.running is None and (effects := self.core.poll(now_us=now_us)):
            self._carry_out(effects, now_us)

    def end_unit(self, *, now_us: int, failure: ErrorCode | None = None) -> None:
        """End the open unit, with its result or with a failure."""
        effect, self.running = self.running, None
        assert effect is not None
        match effect:
            case RunHead():
                event = self._run_head(effect)
            case RunTail():
                event = self._run_tail(effect)
            case RunFusedHead():
                self._run_head(effect.piece)
                event = self._run_head(effect.step)
        event = event if failure is None else UnitEnded(failure=failure)
        self._carry_out(self.core.on(event, now_us=now_us), now_us)

    def _carry_out(self, effects: Sequence[EdgeEffect], now_us: int) -> None:
        for effect in effects:
            match effect:
                case RunHead() | RunTail() | RunFusedHead():
                    assert self.running is None, "two units at once"
                    self.running = effect
                case SendPiece():
                    self._send(effect, now_us)
                case FreeKv():
                    free(self.layers, effect.sequences)
                case DropUnit():
                    self.staged.pop((effect.lane, effect.unit), None)
                case Tell():
                    self.outbox.append(("from_edge", effect.message))

    def _run_head(self, effect: RunHead) -> UnitEnded:
        """Embed and run the head layers; zeros for rows that are not live."""
        tokens = iter(effect.token_ids)
        values: Values = [
            self.head.run(sequence, position, next(tokens), start=0, stop=self.head.stop) if is_live else 0
            for sequence, position, is_live in positions(effect.rows, effect.live)
        ]
        assert next(tokens, None) is None, "tokens of rows that are not there"
        staged = self.staged.setdefault((effect.lane, effect.unit), [None] * effect.num_rows)
        staged[effect.row_start : effect.row_stop] = values
        return UnitEnded()

    def _run_tail(self, effect: RunTail) -> UnitEnded:
        """Run the tail layers and draw tokens."""
        staged = self.staged[(effect.lane, effect.unit)][effect.row_start : effect.row_stop]
        last: dict[int, int] = {}
        cells = positions(effect.rows, effect.live)
        for (sequence, position, is_live), value in zip(cells, staged, strict=True):
            assert value is not None, "a tail ran before all of it was back"
            if is_live:
                last[sequence] = self.tail.run(sequence, position, value, start=self.tail.start, stop=self.tail.stop)
        return UnitEnded(tuple(last[effect.rows[draw.row].sequence] % VOCAB for draw in effect.draws))

    def _send(self, effect: SendPiece, now_us: int) -> None:
        staged = self.staged[(effect.lane, effect.unit)]
        rows = effect.rows
        for start, stop in cut(effect.row_start, effect.row_stop, self.frame_rows):
            arrived = FrameArrived(effect.lane, effect.unit, start, stop, effect.num_rows, now_us, rows=rows)
            self.outbox.append((UP[effect.lane], Frame(arrived, tuple(staged[start:stop]))))
            rows = None
        if effect.row_stop == effect.num_rows:
            del self.staged[(effect.lane, effect.unit)]


@dataclass(slots=True)
class CloudShell:
    """A cloud engine."""

    core: CloudCore
    body: SymbolicLayers
    frame_rows: int
    staged: Staged = field(default_factory=dict)
    running: CloudRun | None = None
    outbox: Outbox = field(default_factory=list)

    @property
    def layers(self) -> tuple[SymbolicLayers, ...]:
        """All layers of this side."""
        return (self.body,)

    def on(self, item: CloudEvent | Frame, *, now_us: int) -> None:
        """Take a task or a frame."""
        event = stage(self.staged, item) if isinstance(item, Frame) else item
        self._carry_out(self.core.on(event, now_us=now_us), now_us)

    def poll(self, *, now_us: int) -> None:
        """Start what is ready."""
        if self.running is None:
            self._carry_out(self.core.poll(now_us=now_us), now_us)

    def end_unit(self, *, now_us: int, failure: ErrorCode | None = None) -> None:
        """End the open unit, with its result or with a failure."""
        effect, self.running = self.running, None
        assert effect is not None
        match effect:
            case RunStep():
                self._run_step(effect)
            case RunSegment():
                self._run_segment(effect)
            case RunFused():
                self._run_segment(effect.chunk)
                self._run_step(effect.step)
        self._carry_out(self.core.on(UnitEnded(failure=failure), now_us=now_us), now_us)

    def _carry_out(self, effects: Sequence[CloudEffect], now_us: int) -> None:
        for effect in effects:
            match effect:
                case RunSegment() | RunStep() | RunFused():
                    assert self.running is None, "two units at once"
                    self.running = effect
                case SendResult():
                    self._send(effect, now_us)
                case SendFailure():
                    self._send_failure(effect, now_us)
                case FreeKv():
                    free(self.layers, effect.sequences)
                case DropUnit():
                    self.staged.pop((effect.lane, effect.unit), None)
                case Tell():
                    self.outbox.append(("from_cloud", effect.message))

    def _run_step(self, effect: RunStep) -> None:
        self._run((Lane.DECODE, effect.step.step), effect.step.rows, effect.live, effect.layers)

    def _run_segment(self, effect: RunSegment) -> None:
        self._run((Lane.PREFILL, effect.chunk.chunk), effect.chunk.rows, effect.live, effect.segment)

    def _run(self, unit: tuple[Lane, int], rows: tuple[Row, ...], live: tuple[bool, ...], layers: Segment) -> None:
        """Run body layers over what is staged."""
        staged = self.staged[unit]
        for index, (sequence, position, is_live) in enumerate(positions(rows, live)):
            value = staged[index]
            assert value is not None, "a body ran before all of it was here"
            if is_live:
                staged[index] = self.body.run(sequence, position, value, start=layers.start, stop=layers.stop)

    def _send(self, effect: SendResult, now_us: int) -> None:
        staged = self.staged.pop((effect.lane, effect.unit))
        cells = positions(effect.rows, effect.live)
        values: Values = [value if is_live else 0 for value, (_, _, is_live) in zip(staged, cells, strict=True)]
        for start, stop in cut(0, len(values), self.frame_rows):
            arrived = FrameArrived(effect.lane, effect.unit, start, stop, len(values), now_us)
            self.outbox.append((DOWN[effect.lane], Frame(arrived, tuple(values[start:stop]))))

    def _send_failure(self, effect: SendFailure, now_us: int) -> None:
        del self.staged[(effect.lane, effect.unit)]
        arrived = FrameArrived(effect.lane, effect.unit, 0, 0, 0, now_us, failed=effect.sequences, code=effect.code)
        self.outbox.append((DOWN[effect.lane], Frame(arrived, ())))


def stage(staged: Staged, frame: Frame) -> FrameArrived:
    """Put the values of a frame to those of its unit that are here; return what the core hears."""
    arrived = frame.arrived
    values = staged.setdefault((arrived.lane, arrived.unit), [None] * arrived.num_rows)
    values[arrived.row_start : arrived.row_stop] = frame.values
    return arrived


def free(layers: Iterable[SymbolicLayers], sequences: tuple[int, ...]) -> None:
    """Free the KV of sequences in every layer of a side."""
    for part in layers:
        part.free(sequences)


def positions(rows: tuple[Row, ...], live: tuple[bool, ...]) -> Iterator[tuple[int, int, bool]]:
    """Yield sequence, position and whether it is live, for each tensor row."""
    for row, is_live in zip(rows, live, strict=True):
        for position in range(row.start, row.stop):
            yield row.sequence, position, is_live


def cut(start: int, stop: int, length: int) -> Iterator[tuple[int, int]]:
    """Cut `[start, stop)` into ranges of at most `length`."""
    for first in range(start, stop, length):
        yield first, min(first + length, stop)
