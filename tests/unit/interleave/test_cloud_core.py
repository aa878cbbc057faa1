"""The cloud engine's core, one behaviour at a time."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from edgeweave.errors import ProtocolError
from edgeweave.interleave.cloud_core import CloudCore
from edgeweave.interleave.cloud_work import CloudChunks
from edgeweave.interleave.effects import (
    CloudEffect,
    CloudRun,
    DropUnit,
    FrameArrived,
    FreeKv,
    RunFused,
    RunSegment,
    RunStep,
    SendFailure,
    SendResult,
    Tell,
    UnitEnded,
)
from edgeweave.interleave.ledger import Ledger
from edgeweave.interleave.nouns import (
    BubbleCause,
    Chunk,
    ErrorCode,
    Lane,
    Plan,
    PlanKind,
    Released,
    ReleaseSequences,
    Rider,
    Row,
    Segment,
    Stage,
)

BODY = Segment(1, 5)
PLAN = Plan(plan=1, kind=PlanKind.TWO_P_ONE_D, max_prefills=2, max_steps=1, max_batch_size=8,
            decode_return_us=100, max_grace_us=200)  # fmt: skip
FUSES = replace(PLAN, plan=2, may_fuse=True)
HALVES = (Segment(1, 3), Segment(3, 5))


def made() -> CloudCore:
    """A core of a session that has just begun."""
    return CloudCore(BODY, PLAN, Ledger(0))


def chunk(number: int, *rows: Row, segments: tuple[Segment, ...] = (BODY,)) -> Chunk:
    """A chunk of these rows, in one segment if not said otherwise."""
    return Chunk(number, rows, segments, plan=1, deadline_ms=1000)


def chunk_frame(number: int, num_rows: int, start: int = 0, stop: int | None = None) -> FrameArrived:
    """A frame of a chunk: all of it, if not said otherwise."""
    return FrameArrived(Lane.PREFILL, number, start, num_rows if stop is None else stop, num_rows, sent_us=0)


def step_frame(number: int, *rows: Row) -> FrameArrived:
    """The only frame of a step."""
    num_rows = sum(row.num_tokens for row in rows)
    return FrameArrived(Lane.DECODE, number, 0, num_rows, num_rows, sent_us=0, rows=rows)


def tell(
    core: CloudCore, *events: Chunk | ReleaseSequences | Plan | FrameArrived | UnitEnded, now_us: int = 0
) -> list[CloudEffect]:
    """Tell the core some things; return what followed."""
    return [effect for event in events for effect in core.on(event, now_us=now_us)]


def run(core: CloudCore, *, now_us: int = 0) -> CloudRun | None:
    """Start the next unit, if one is ready."""
    effects = core.poll(now_us=now_us)
    if not effects:
        return None
    (effect,) = effects
    assert isinstance(effect, RunSegment | RunStep | RunFused)
    return effect


def told(effects: Iterable[CloudEffect]) -> list[object]:
    """What the scheduler is told."""
    return [effect.message for effect in effects if isinstance(effect, Tell)]


def with_chunk(*rows: Row, segments: tuple[Segment, ...] = (BODY,)) -> CloudCore:
    """A core in which chunk 1 is all there."""
    core = made()
    task = chunk(1, *rows, segments=segments)
    tell(core, task, chunk_frame(1, task.num_tokens))
    return core


def decoding(*sequences: int) -> CloudCore:
    """A core in which these sequences have three tokens each."""
    core = with_chunk(*(Row(sequence, 0, 3) for sequence in sequences))
    run(core)
    tell(core, UnitEnded())
    return core


def test_frames_before_their_task_are_held() -> None:
    """Task and frames come in either order; the chunk is ready when both are there."""
    core = made()
    assert tell(core, chunk_frame(1, 3, 0, 2), chunk_frame(1, 3, 2, 3)) == []
    assert run(core) is None
    assert not core.is_empty
    tell(core, chunk(1, Row(1, 0, 3)))
    assert run(core) == RunSegment(chunk(1, Row(1, 0, 3)), BODY, (True,))


def test_early_chunks_are_bounded_by_what_staging_holds_and_not_by_their_number() -> None:
    """Many that were aborted at once may be early together; still, no peer fills the memory."""
    core = CloudCore(BODY, PLAN, Ledger(0), chunks=CloudChunks(max_early_rows=300))
    tell(core, *(chunk_frame(number, 3, start, start + 1) for number in range(1, 101) for start in (0, 2)))
    with pytest.raises(ProtocolError, match="101 chunks of 301 rows came before their tasks and staging holds 300"):
        tell(core, chunk_frame(101, 1))


def test_early_chunks_that_were_aborted_leave_nothing_behind() -> None:
    """Each task still comes, with its release behind it."""
    core = made()
    tell(core, *(chunk_frame(number, 3, 0, 1) for number in range(1, 101)))
    for number in range(1, 101):
        tell(core, chunk(number, Row(number, 0, 3)), ReleaseSequences((number,)))
    assert core.is_empty


def test_the_time_before_a_task_is_the_schedulers_once_no_sequence_decodes() -> None:
    """A step is on its way only as long as a sequence that was in one is open."""
    core = decoding(1)
    tell(core, step_frame(1, Row(1, 3, 4)))
    run(core)
    tell(core, UnitEnded(), chunk(2, Row(2, 0, 3)), now_us=10)
    tell(core, ReleaseSequences((1,)), now_us=20)
    tell(core, chunk_frame(2, 3), now_us=30)
    assert run(core, now_us=30) is not None
    tell(core, UnitEnded(), now_us=40)
    tell(core, chunk(3, Row(3, 0, 3)), now_us=60)
    tell(core, replace(chunk_frame(3, 3), sent_us=70), now_us=70)
    assert run(core, now_us=70) is not None
    last = core.take_timeline(now_us=80).bubbles[-2:]
    assert [(bubble.begin_us, bubble.end_us, bubble.cause) for bubble in last] == [
        (40, 60, BubbleCause.AWAIT_TASK),
        (60, 70, BubbleCause.AWAIT_PREFILL_HIDDEN),
    ]


def test_a_stale_frame_is_thrown_away() -> None:
    """At or below the highest announced chunk and not open."""
    core = with_chunk(Row(1, 0, 3))
    tell(core, ReleaseSequences((1,)))
    assert tell(core, chunk_frame(1, 3)) == [DropUnit(Lane.PREFILL, 1)]
    assert core.is_empty


def test_segments_run_in_order_and_the_result_goes_down_after_the_last() -> None:
    """L19: each layer once; between two segments anything may run."""
    core = with_chunk(Row(1, 0, 3), segments=HALVES)
    first = run(core)
    assert isinstance(first, RunSegment)
    assert first.segment == HALVES[0]
    assert tell(core, UnitEnded()) == []
    second = run(core)
    assert isinstance(second, RunSegment)
    assert second.segment == HALVES[1]
    assert tell(core, UnitEnded()) == [SendResult(Lane.PREFILL, 1, (Row(1, 0, 3),), (True,))]


def test_bodies_run_in_issue_order_even_if_the_second_is_here_first() -> None:
    """No segment of a chunk before the last of the chunk before it."""
    core = made()
    tell(core, chunk(1, Row(1, 0, 3)), chunk(2, Row(2, 0, 1)), chunk_frame(2, 1))
    assert run(core) is None
    tell(core, chunk_frame(1, 3))
    order = []
    while (unit := run(core)) is not None:
        assert isinstance(unit, RunSegment)
        order.append(unit.chunk.chunk)
        tell(core, UnitEnded())
    assert order == [1, 2]


def test_a_released_row_is_skipped_and_comes_back_as_zeros() -> None:
    """The rest of the chunk runs; skipped rows are counted."""
    core = with_chunk(Row(1, 0, 3), Row(2, 0, 1))
    assert tell(core, ReleaseSequences((1,))) == [FreeKv((1,)), Tell(Released((1,)))]
    unit = run(core)
    assert isinstance(unit, RunSegment)
    assert unit.live == (False, True)
    (result,) = tell(core, UnitEnded())
    assert isinstance(result, SendResult)
    assert result.live == (False, True)
    (ran,) = core.take_timeline(now_us=0).ran
    assert (ran.num_skipped, ran.num_rows, core.num_skipped) == (1, 1, 1)


def test_a_chunk_that_nobody_waits_for_is_dropped_wherever_it_is() -> None:
    """While it fills, when it is ready, and between two of its segments."""
    filling = made()
    tell(filling, chunk(1, Row(1, 0, 3)), chunk_frame(1, 3, 0, 1))
    between = with_chunk(Row(1, 0, 3), segments=HALVES)
    run(between)
    tell(between, UnitEnded())
    for core in (filling, with_chunk(Row(1, 0, 3)), between):
        effects = tell(core, ReleaseSequences((1,)))
        assert effects == [FreeKv((1,)), DropUnit(Lane.PREFILL, 1), Tell(Released((1,)))]
        assert core.is_empty


def test_kv_is_freed_between_two_units_never_under_one() -> None:
    """L45: a release while a unit runs waits for its end."""
    core = with_chunk(Row(1, 0, 3), segments=HALVES)
    run(core)
    assert tell(core, ReleaseSequences((1,))) == []
    assert tell(core, UnitEnded()) == [FreeKv((1,)), DropUnit(Lane.PREFILL, 1), Tell(Released((1,)))]


def test_a_release_of_what_is_gone_frees_nothing_and_is_answered() -> None:
    """It crossed with another; the scheduler counts an answer once."""
    core = decoding(1)
    tell(core, ReleaseSequences((1,)))
    assert tell(core, ReleaseSequences((1,))) == [Tell(Released((1,)))]


def test_a_step_runs_the_whole_body_and_rows_of_the_gone_are_zeros() -> None:
    """Its first frame names its rows; the released are skipped."""
    core = decoding(1, 2)
    tell(core, ReleaseSequences((2,)), step_frame(1, Row(1, 3, 4), Row(2, 3, 4)))
    unit = run(core)
    assert isinstance(unit, RunStep)
    assert (unit.layers, unit.live) == (BODY, (True, False))
    assert core.sequences[1].length == 4


def test_a_step_row_may_hold_several_tokens() -> None:
    """A row is a range of positions; nothing assumes that a step takes one."""
    core = decoding(1)
    tell(core, step_frame(1, Row(1, 3, 6)))
    assert isinstance(run(core), RunStep)
    assert core.sequences[1].length == 6
    assert tell(core, UnitEnded()) == [SendResult(Lane.DECODE, 1, (Row(1, 3, 6),), (True,))]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (step_frame(1, Row(9, 0, 1)), "sequence 9 has a row and was never created"),
        (step_frame(1, Row(1, 5, 6)), r"row \[5, 6\) of sequence 1 meets a KV length of 3"),
    ],
)
def test_a_row_that_does_not_fit_its_sequence_is_an_error(frame: FrameArrived, message: str) -> None:
    """Never created, or not where the sequence ends; the session must end."""
    core = decoding(1)
    tell(core, frame)
    with pytest.raises(ProtocolError, match=message):
        run(core)


def test_a_frame_that_does_not_fit_its_unit_is_an_error() -> None:
    """Counts of rows must agree, and a step must name its rows."""
    core = made()
    tell(core, chunk(1, Row(1, 0, 3)))
    with pytest.raises(ProtocolError, match="chunk 1 has 3 tokens, its frame says 4 rows"):
        tell(core, chunk_frame(1, 4))
    with pytest.raises(ProtocolError, match="step 5 came without the rows"):
        tell(core, FrameArrived(Lane.DECODE, 5, 0, 1, 1, sent_us=0))
    with pytest.raises(ProtocolError, match="step 1 names 1 tokens and has 2 rows"):
        tell(core, FrameArrived(Lane.DECODE, 1, 0, 2, 2, sent_us=0, rows=(Row(1, 3, 4),)))


def test_a_new_sequence_begins_at_its_first_token() -> None:
    """A chunk that creates a sequence in the middle is a bug of its scheduler."""
    with pytest.raises(ProtocolError, match="sequence 1 begins at token 2"):
        tell(made(), chunk(1, Row(1, 2, 3)))


def test_a_failed_unit_fails_only_its_sequences() -> None:
    """The failure goes down in place of the result; later rows of those sequences are skipped."""
    core = with_chunk(Row(1, 0, 3))
    tell(core, chunk(2, Row(1, 3, 4), Row(2, 0, 2)), chunk_frame(2, 3))
    run(core)
    failure = UnitEnded(failure=ErrorCode.OUT_OF_MEMORY)
    assert tell(core, failure) == [SendFailure(Lane.PREFILL, 1, (1,), ErrorCode.OUT_OF_MEMORY)]
    unit = run(core)
    assert isinstance(unit, RunSegment)
    assert unit.live == (False, True)
    assert 1 in core.sequences


def test_kinds_alternate_and_a_decode_that_is_due_gets_its_chance() -> None:
    """L16, L17: segment, step, segment, then wait until the step is due and no longer; the wait is grace."""
    core = with_chunk(Row(1, 0, 3))
    run(core)
    tell(core, UnitEnded())
    tell(core, chunk(2, Row(2, 0, 1), segments=HALVES), chunk_frame(2, 1), step_frame(1, Row(1, 3, 4)), now_us=10)
    assert isinstance(run(core, now_us=10), RunStep)
    tell(core, UnitEnded(), now_us=20)
    assert isinstance(run(core, now_us=20), RunSegment)
    tell(core, UnitEnded(), now_us=50)
    assert run(core, now_us=50) is None
    assert core.wake_us(now_us=50) == 120
    assert isinstance(run(core, now_us=120), RunSegment)
    bubbles = core.take_timeline(now_us=120).bubbles
    assert (bubbles[-1].cause, bubbles[-1].begin_us, bubbles[-1].end_us) == (BubbleCause.GRACE, 50, 120)


def test_a_grace_that_ended_between_two_looks_is_due_now() -> None:
    """A shell that asks a moment after the wait was over must not sleep until the next event."""
    core = with_chunk(Row(1, 0, 3))
    assert core.wake_us(now_us=5) == 5
    run(core)
    tell(core, UnitEnded())
    tell(core, chunk(2, Row(2, 0, 1), segments=HALVES), chunk_frame(2, 1), step_frame(1, Row(1, 3, 4)), now_us=10)
    for begin_us, end_us in ((10, 20), (20, 50)):
        run(core, now_us=begin_us)
        tell(core, UnitEnded(), now_us=end_us)
    assert run(core, now_us=119) is None
    assert core.wake_us(now_us=121) == 121
    assert isinstance(run(core, now_us=121), RunSegment)
    assert core.wake_us(now_us=121) is None


def test_grace_ends_with_the_work_that_it_held_back() -> None:
    """A wait by choice is grace only while there is something to choose."""
    core = with_chunk(Row(1, 0, 3))
    run(core)
    tell(core, UnitEnded())
    tell(core, chunk(2, Row(2, 0, 1), segments=HALVES), chunk_frame(2, 1), step_frame(1, Row(1, 3, 4)), now_us=10)
    for begin_us, end_us in ((10, 20), (20, 50)):
        run(core, now_us=begin_us)
        tell(core, UnitEnded(), now_us=end_us)
    assert run(core, now_us=50) is None
    tell(core, ReleaseSequences((2,)), now_us=60)
    assert run(core, now_us=60) is None
    tell(core, step_frame(2, Row(1, 4, 5)), now_us=90)
    run(core, now_us=90)
    causes = {bubble.cause for bubble in core.take_timeline(now_us=90).bubbles if bubble.begin_us >= 50}
    assert BubbleCause.GRACE not in causes


def test_the_end_of_a_unit_that_is_not_open_is_an_error() -> None:
    """At most one unit is open; the shell must not answer twice."""
    with pytest.raises(ProtocolError, match="a unit ended and none was open"):
        tell(made(), UnitEnded())


def test_the_newest_plan_is_followed_at_once() -> None:
    """Order follows the newest plan; what ran names the plan that was followed."""
    core = with_chunk(Row(1, 0, 3))
    tell(core, Plan(plan=8, kind=PlanKind.SERIAL, max_prefills=1, max_steps=1, max_batch_size=1))
    run(core)
    tell(core, UnitEnded())
    assert [ran.plan for ran in core.take_timeline(now_us=0).ran] == [8]


def adaptive_core(*, decode_return_us: int = 0, fill_to_rows: int = 0, layer_us: int = 10) -> CloudCore:
    """A core under an adaptive plan, with two chunks of a body of nine layers that are all here.

    Their layers take `layer_us`. With a decode return, sequence 9 decodes and its step has just left; it is expected
    then.
    """
    plan = Plan(
        1,
        PlanKind.ADAPTIVE,
        max_prefills=2,
        max_steps=1,
        max_batch_size=4,
        decode_return_us=decode_return_us,
        fill_to_rows=fill_to_rows,
        fill_row_us=30,
    )
    body = Segment(1, 10)
    begin_us = -layer_us * body.num_layers
    core = CloudCore(body, plan, Ledger(begin_us))
    announced = [Chunk(number, (Row(number, 0, 4),), (body,), 1, 1000) for number in (1, 2, 3)]
    core.on(announced[0], now_us=begin_us)
    core.on(FrameArrived(Lane.PREFILL, 1, 0, 4, 4, 0), now_us=begin_us)
    assert core.poll(now_us=begin_us)
    core.on(UnitEnded(), now_us=0)
    if decode_return_us:
        send_step(core, 1, start=4)
        run_all(core)
    for chunk in announced[1:]:
        core.on(chunk, now_us=0)
        core.on(FrameArrived(Lane.PREFILL, chunk.chunk, 0, 4, 4, 0), now_us=0)
    core.chunks.open[2].layer_us = core.chunks.open[3].layer_us = float(layer_us)
    return core


def run_all(core: CloudCore) -> None:
    """Run what is there in no time."""
    while core.poll(now_us=0):
        core.on(UnitEnded(), now_us=0)


def send_step(core: CloudCore, number: int, *, start: int) -> None:
    """Let a step of sequence 1 arrive."""
    rows = (Row(1, start, start + 1),)
    core.on(FrameArrived(Lane.DECODE, number, 0, 1, 1, 0, rows=rows), now_us=0)


def ran_layers(core: CloudCore, *, layer_us: int, num_units: int) -> list[tuple[int, int]]:
    """Run segments whose layers take `layer_us` each; return their layers."""
    now_us, spans = 0, []
    for _ in range(num_units):
        (effect,) = core.poll(now_us=now_us)
        assert isinstance(effect, RunSegment)
        spans.append((effect.segment.start, effect.segment.stop))
        now_us += layer_us * effect.segment.num_layers
        core.on(UnitEnded(), now_us=now_us)
    return spans


def test_an_adaptive_chunk_runs_through_while_no_step_is_on_its_way() -> None:
    """There is nobody to yield to."""
    assert ran_layers(adaptive_core(), layer_us=10, num_units=2) == [(1, 10), (1, 10)]


def test_an_adaptive_segment_lasts_until_a_step_is_due_and_then_yields_after_any_layer() -> None:
    """Layers of 3 ms and a return of 13: five in one piece, then one at a time; each layer runs once."""
    core = adaptive_core(decode_return_us=13_000, layer_us=3000)
    assert ran_layers(core, layer_us=3000, num_units=5) == [(1, 6), (6, 7), (7, 8), (8, 9), (9, 10)]


def test_thin_layers_run_several_at_a_time_while_a_step_is_late() -> None:
    """Layers of 1 ms and a return of .5: pieces of at least 2 ms, before and after the step was due."""
    core = adaptive_core(decode_return_us=500, layer_us=1000)
    assert ran_layers(core, layer_us=1000, num_units=3) == [(1, 3), (3, 5), (5, 7)]


def test_a_step_waits_for_prefill_that_fills_the_batch() -> None:
    """Of three rows that are wanted one is through its prefill: 2 x 30 us of prefill run before the step."""
    core = adaptive_core(decode_return_us=5, fill_to_rows=3)
    send_step(core, 2, start=5)
    assert ran_layers(core, layer_us=10, num_units=1) == [(1, 7)]
    (effect,) = core.poll(now_us=60)
    assert isinstance(effect, RunStep)


def test_a_step_does_not_wait_for_a_full_batch() -> None:
    """As many are through their prefill as are wanted: prefill gets one layer and yields."""
    core = adaptive_core(decode_return_us=5, fill_to_rows=1)
    send_step(core, 2, start=5)
    assert ran_layers(core, layer_us=10, num_units=1) == [(1, 2)]
    (effect,) = core.poll(now_us=10)
    assert isinstance(effect, RunStep)


def test_a_unit_tells_when_all_of_it_was_here() -> None:
    """What it waited for in the cloud is told apart from its way: each segment of a chunk names the chunk's arrival."""
    core = made()
    tell(core, chunk(1, Row(1, 0, 3), segments=(Segment(1, 2), Segment(2, 3))), chunk_frame(1, 3, 0, 2), now_us=30)
    tell(core, chunk_frame(1, 3, 2, 3), now_us=40)
    for begin_us in (70, 90):
        assert run(core, now_us=begin_us) is not None
        tell(core, UnitEnded(), now_us=begin_us + 10)
    tell(core, step_frame(1, Row(1, 3, 4)), now_us=120)
    assert run(core, now_us=125) is not None
    tell(core, UnitEnded(), now_us=130)
    assert [ran.ready_us for ran in core.take_timeline(now_us=140).ran] == [40, 40, 120]


def test_what_arrived_while_a_unit_ran_was_here_since_it_arrived() -> None:
    """A busy engine hears of it late; hops and the time that a step was here are by the arrival all the same."""
    core = decoding(1)
    tell(core, chunk(2, Row(2, 0, 3)), chunk_frame(2, 3), now_us=10)
    run(core, now_us=10)
    late = replace(step_frame(1, Row(1, 3, 4)), arrived_us=25)
    tell(core, late, UnitEnded(), now_us=110)
    core.take_timeline(now_us=110)
    run(core, now_us=110)
    tell(core, UnitEnded(), now_us=130)
    timeline = core.take_timeline(now_us=130)
    assert [ran.ready_us for ran in timeline.ran] == [25]
    assert timeline.inside_us == 130 - 25


def fusing(*, segments: tuple[Segment, ...] = HALVES) -> CloudCore:
    """A core that fuses, in which sequence 1 decodes and chunk 2, of sequence 2, is all there."""
    core = decoding(1)
    tell(core, FUSES, chunk(2, Row(2, 0, 4), segments=segments), chunk_frame(2, 4))
    return core


def test_rows_of_a_step_ride_in_a_chunk_that_has_not_begun() -> None:
    """One unit through the whole body, whatever the cut; each goes down its lane; the report says what it was."""
    core = fusing()
    tell(core, step_frame(1, Row(1, 3, 4)), now_us=40)
    unit = run(core, now_us=50)
    assert isinstance(unit, RunFused)
    assert (unit.chunk.chunk.chunk, unit.chunk.segment, unit.chunk.live) == (2, BODY, (True,))
    assert (unit.step.step.step, unit.step.layers, unit.step.live) == (1, BODY, (True,))
    assert tell(core, UnitEnded(), now_us=90) == [
        SendResult(Lane.PREFILL, 2, (Row(2, 0, 4),), (True,)),
        SendResult(Lane.DECODE, 1, (Row(1, 3, 4),), (True,)),
    ]
    ran = core.take_timeline(now_us=100).ran[-1]
    assert (ran.stage, ran.chunk, ran.step, ran.start, ran.stop) == (Stage.FUSED_SEGMENT, 2, None, 1, 5)
    assert (ran.num_rows, ran.num_tokens, ran.ready_us) == (2, 5, 0)
    assert ran.rider == Rider(1, 1, 1, ready_us=40)
    assert ran.step_part is ran.rider


def test_a_step_that_comes_late_runs_alone_up_to_its_chunk_and_rides_from_there() -> None:
    """The layers that the chunk has behind it first, then the rest of both; in between nothing else runs."""
    core = fusing()
    assert run(core) == RunSegment(chunk(2, Row(2, 0, 4), segments=HALVES), HALVES[0], (True,))
    tell(core, step_frame(1, Row(1, 3, 4)), UnitEnded())
    first = run(core)
    tell(core, chunk(3, Row(3, 0, 2)), chunk_frame(3, 2))
    assert isinstance(first, RunStep)
    assert (first.layers, first.step.step) == (Segment(1, 3), 1)
    assert tell(core, UnitEnded()) == []
    second = run(core)
    assert isinstance(second, RunFused)
    assert second.chunk.segment == second.step.layers == Segment(3, 5)
    assert len(tell(core, UnitEnded())) == 2
    stages = [ran.stage for ran in core.take_timeline(now_us=1).ran]
    assert stages[-3:] == [Stage.SEGMENT, Stage.BOARDING, Stage.FUSED_SEGMENT]
    assert core.sequences[1].length == 4


def test_a_chunk_that_has_begun_takes_rows_only_where_the_plan_says() -> None:
    """Before `fuse_after_layers` of it ran, its rest covers returns: the step runs alone."""
    core = fusing()
    tell(core, replace(FUSES, plan=3, fuse_after_layers=3))
    run(core)
    tell(core, step_frame(1, Row(1, 3, 4)), UnitEnded())
    unit = run(core)
    assert isinstance(unit, RunStep)
    assert unit.layers == BODY


def test_rows_ride_in_the_next_chunk_where_one_has_begun() -> None:
    """It overtakes the one that covers; that goes on where it was, alone."""
    core = fusing()
    run(core)
    tell(core, chunk(3, Row(3, 0, 2)), chunk_frame(3, 2), step_frame(1, Row(1, 3, 4)), UnitEnded())
    unit = run(core)
    assert isinstance(unit, RunFused)
    assert (unit.chunk.chunk.chunk, unit.step.layers) == (3, BODY)
    tell(core, UnitEnded())
    assert run(core) == RunSegment(chunk(2, Row(2, 0, 4), segments=HALVES), HALVES[1], (True,))


def test_no_chunk_overtakes_one_that_has_a_sequence_in_common() -> None:
    """The tokens of a sequence stay in order, also over a chunk in between; rows ride in the chunk that has begun."""
    core = fusing()
    run(core)
    tell(core, chunk(3, Row(2, 4, 6), Row(3, 0, 2)), chunk_frame(3, 4), chunk(4, Row(3, 2, 4)), chunk_frame(4, 2))
    tell(core, step_frame(1, Row(1, 3, 4)), UnitEnded())
    run(core)
    tell(core, UnitEnded())
    unit = run(core)
    assert isinstance(unit, RunFused)
    assert (unit.chunk.chunk.chunk, unit.step.layers) == (2, HALVES[1])


def test_a_fused_unit_that_fails_fails_chunk_and_step() -> None:
    """Both are answered with the code, each on its lane with its sequences; all are skipped from then on."""
    core = fusing()
    tell(core, step_frame(1, Row(1, 3, 4)))
    run(core)
    assert tell(core, UnitEnded(failure=ErrorCode.OUT_OF_MEMORY)) == [
        SendFailure(Lane.PREFILL, 2, (2,), ErrorCode.OUT_OF_MEMORY),
        SendFailure(Lane.DECODE, 1, (1,), ErrorCode.OUT_OF_MEMORY),
    ]
    assert core.book.live((Row(1, 4, 5), Row(2, 4, 5))) == (False, False)
    tell(core, ReleaseSequences((1, 2)))
    assert core.is_empty


def test_rows_that_are_gone_are_skipped_in_a_fused_unit() -> None:
    """A chunk and a step of which a sequence was released run with the others, and both count what they skip."""
    core = decoding(1, 2)
    tell(core, FUSES, chunk(2, Row(3, 0, 2), Row(4, 0, 2)), chunk_frame(2, 4))
    tell(core, step_frame(1, Row(1, 3, 4), Row(2, 3, 4)), ReleaseSequences((2, 3)))
    unit = run(core)
    assert isinstance(unit, RunFused)
    assert (unit.chunk.live, unit.step.live) == ((False, True), (True, False))
    tell(core, UnitEnded())
    ran = core.take_timeline(now_us=1).ran[-1]
    assert (ran.num_rows, ran.num_tokens, ran.num_skipped, core.num_skipped) == (2, 3, 2, 2)
    assert ran.rider == Rider(1, 1, 1, ready_us=0)


def test_a_step_whose_chunk_is_gone_goes_on_alone() -> None:
    """The chunk was dropped between the two parts: the rest of the step is what is left of the body."""
    core = fusing()
    run(core)
    tell(core, step_frame(1, Row(1, 3, 4)), UnitEnded())
    run(core)
    tell(core, ReleaseSequences((2,)), UnitEnded())
    unit = run(core)
    assert isinstance(unit, RunStep)
    assert unit.layers == Segment(3, 5)
    assert tell(core, UnitEnded()) == [SendResult(Lane.DECODE, 1, (Row(1, 3, 4),), (True,))]
    assert core.take_timeline(now_us=1).ran[-1].stage is Stage.STEP


def test_time_inside_counts_chunk_and_step_each() -> None:
    """From when all of either was here to the end of the unit that both were in."""
    core = decoding(1)
    core.take_timeline(now_us=0)
    tell(core, FUSES, chunk(2, Row(2, 0, 4)), chunk_frame(2, 4), now_us=10)
    tell(core, step_frame(1, Row(1, 3, 4)), now_us=30)
    run(core, now_us=40)
    tell(core, UnitEnded(), now_us=100)
    assert core.take_timeline(now_us=100).inside_us == 90 + 70
