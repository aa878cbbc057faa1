"""The edge engine's core, one behaviour at a time."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from edgeweave.errors import ProtocolError
from edgeweave.interleave.edge_core import EdgeCore, EdgeEvent
from edgeweave.interleave.effects import (
    DropUnit,
    EdgeEffect,
    FrameArrived,
    FreeKv,
    RunFusedHead,
    RunHead,
    RunTail,
    SendPiece,
    Tell,
    UnitEnded,
)
from edgeweave.interleave.ledger import Ledger
from edgeweave.interleave.nouns import (
    GREEDY,
    Chunk,
    ChunkDone,
    ErrorCode,
    ExtendSequence,
    FinishReason,
    Lane,
    OpenSequence,
    Plan,
    PlanKind,
    Released,
    ReleaseSequences,
    Rider,
    Row,
    Sample,
    Segment,
    Stage,
    StepDone,
    UnitFailed,
)

ONE_P = Plan(plan=1, kind=PlanKind.ONE_P_ONE_D, max_prefills=1, max_steps=1, max_batch_size=8)
TWO_P = Plan(plan=1, kind=PlanKind.TWO_P_ONE_D, max_prefills=2, max_steps=1, max_batch_size=8, next_head_first=True)
TWO_GROUPS = Plan(plan=1, kind=PlanKind.TWO_P_ONE_D, max_prefills=2, max_steps=2, max_batch_size=8)
SERIAL = Plan(plan=1, kind=PlanKind.SERIAL, max_prefills=1, max_steps=1, max_batch_size=8)
FUSES = replace(TWO_P, may_fuse=True)
STOP = 0


def made(plan: Plan = ONE_P, *, piece_tokens: int = 8, holds_body: bool = False) -> EdgeCore:
    """A core of a session that has just begun."""
    return EdgeCore(plan, Ledger(0), piece_tokens, holds_body=holds_body)


def opening(sequence: int, num_prompt: int = 3, *, max_tokens: int = 9, token_limit: int = 50) -> OpenSequence:
    """A sequence whose prompt is 1, 2, 3 and so on."""
    prompt = tuple(range(1, num_prompt + 1))
    return OpenSequence(sequence, prompt, num_prompt, GREEDY, frozenset({STOP}), max_tokens, token_limit)


def chunk(number: int, *rows: Row) -> Chunk:
    """A chunk of these rows."""
    return Chunk(number, rows, (Segment(1, 3),), plan=1, deadline_ms=1000)


def back(lane: Lane, unit: int, num_rows: int) -> FrameArrived:
    """A whole unit that comes back."""
    return FrameArrived(lane, unit, 0, num_rows, num_rows, sent_us=0)


def tell(core: EdgeCore, *events: EdgeEvent, now_us: int = 0) -> list[EdgeEffect]:
    """Tell the core some things; return what followed."""
    return [effect for event in events for effect in core.on(event, now_us=now_us)]


def run(core: EdgeCore, *, now_us: int = 0) -> RunHead | RunTail | None:
    """Start the next unit, if one is ready; it must begin with a run."""
    effects = core.poll(now_us=now_us)
    runs = [effect for effect in effects if isinstance(effect, RunHead | RunTail)]
    return runs[-1] if runs else None


def head(core: EdgeCore) -> RunHead:
    """Start the next unit, which must be a head."""
    unit = run(core)
    assert isinstance(unit, RunHead)
    return unit


def tail(core: EdgeCore) -> RunTail:
    """Start the next unit, which must begin with a tail."""
    unit = run(core)
    assert isinstance(unit, RunTail)
    return unit


def told(effects: Iterable[EdgeEffect]) -> list[object]:
    """What the scheduler is told, in order."""
    return [effect.message for effect in effects if isinstance(effect, Tell)]


def prefilled(core: EdgeCore, *openings: OpenSequence, token: int = 7) -> EdgeCore:
    """Bring sequences home: one chunk goes up and comes back, and each samples `token`."""
    number = max((task.sequence for task in openings), default=0)
    rows = tuple(Row(task.sequence, 0, len(task.token_ids)) for task in openings)
    task = chunk(number, *rows)
    tell(core, *openings, task)
    head(core)
    tell(core, UnitEnded(), back(Lane.PREFILL, number, task.num_tokens))
    tail(core)
    tell(core, UnitEnded((token,) * len(openings)))
    return core


def launched(core: EdgeCore) -> RunHead:
    """Launch the next step."""
    unit = head(core)
    assert unit.lane is Lane.DECODE
    tell(core, UnitEnded())
    return unit


def test_a_head_runs_piece_by_piece_and_each_piece_leaves_at_once() -> None:
    """Frames flow while the head computes; tokens are those of the positions of the piece."""
    core = made(piece_tokens=2)
    tell(core, opening(1), opening(2, 1), chunk(1, Row(1, 0, 3), Row(2, 0, 1)))
    first = head(core)
    assert (first.rows, first.token_ids, first.row_start, first.row_stop) == ((Row(1, 0, 2),), (1, 2), 0, 2)
    assert tell(core, UnitEnded()) == [SendPiece(Lane.PREFILL, 1, 0, 2, 4)]
    second = head(core)
    assert (second.rows, second.token_ids) == ((Row(1, 2, 3), Row(2, 0, 1)), (3, 1))
    assert tell(core, UnitEnded()) == [SendPiece(Lane.PREFILL, 1, 2, 4, 4)]


def test_a_turnaround_runs_between_two_pieces_of_a_head() -> None:
    """L12, L13: a decode group never waits behind more than one piece."""
    core = prefilled(made(piece_tokens=3), opening(1))
    launched(core)
    tell(core, opening(2, 6), chunk(2, Row(2, 0, 6)))
    head(core)
    tell(core, back(Lane.DECODE, 1, 1), UnitEnded())
    assert tail(core).lane is Lane.DECODE


@pytest.mark.parametrize(("plan", "expected"), [(ONE_P, RunTail), (TWO_P, RunHead)])
def test_the_next_head_goes_before_the_tail_only_with_two_chunks(plan: Plan, expected: type) -> None:
    """L12: 2p1d gives the cloud the next chunk in time; 1p1d ends the one before."""
    core = made(plan)
    tell(core, opening(1), opening(2), chunk(1, Row(1, 0, 3)))
    head(core)
    tell(core, UnitEnded(), back(Lane.PREFILL, 1, 3), chunk(2, Row(2, 0, 3)))
    assert type(run(core)) is expected


def test_tails_run_in_issue_order() -> None:
    """The second chunk is back and waits for the first."""
    core = made(TWO_P)
    tell(core, opening(1), opening(2), chunk(1, Row(1, 0, 3)), chunk(2, Row(2, 0, 3)))
    for _ in range(2):
        head(core)
        tell(core, UnitEnded())
    tell(core, back(Lane.PREFILL, 2, 3))
    assert run(core) is None
    tell(core, back(Lane.PREFILL, 1, 3))
    assert tail(core).unit == 1


def test_only_the_last_chunk_of_a_prompt_samples() -> None:
    """L31: a sequence is at home, and may decode, when its first token is there."""
    core = made(TWO_P)
    tell(core, opening(1, 5), chunk(1, Row(1, 0, 3)), chunk(2, Row(1, 3, 5)))
    for _ in range(2):
        head(core)
        tell(core, UnitEnded())
    tell(core, back(Lane.PREFILL, 1, 3), back(Lane.PREFILL, 2, 2))
    assert tail(core).draws == ()
    assert told(tell(core, UnitEnded())) == [ChunkDone(1, (), 0)]
    assert len(tail(core).draws) == 1
    assert told(tell(core, UnitEnded((7,)))) == [ChunkDone(2, (Sample(1, 0, 7),), 0)]
    assert head(core).rows == (Row(1, 5, 6),)


def test_decode_goes_on_without_asking_and_tells_after_the_next_step_has_left() -> None:
    """Tail, sample and next head are one unit; only then the scheduler is told."""
    core = prefilled(made(), opening(1))
    launched(core)
    tell(core, back(Lane.DECODE, 1, 1))
    assert tail(core).draws[0].index == 1
    (dropped, next_head) = tell(core, UnitEnded((8,)))
    assert dropped == DropUnit(Lane.DECODE, 1)
    assert isinstance(next_head, RunHead)
    assert (next_head.rows, next_head.token_ids) == ((Row(1, 4, 5),), (8,))
    sent, done = tell(core, UnitEnded())
    assert sent == SendPiece(Lane.DECODE, 2, 0, 1, 1, (Row(1, 4, 5),))
    assert done == Tell(StepDone(1, (Sample(1, 1, 8),), 0, 0))
    (*_, turnaround) = core.take_timeline(now_us=0).ran
    assert (turnaround.stage, turnaround.step) == (Stage.TURNAROUND, 1)


@pytest.mark.parametrize(("token", "max_tokens", "finish"), [(STOP, 9, FinishReason.STOP), (7, 2, FinishReason.LENGTH)])
def test_a_finish_is_decided_here_and_frees_at_once(token: int, max_tokens: int, finish: FinishReason) -> None:
    """The edge knows stop tokens and the limit; the sample says why it was the last, and the KV is free."""
    core = prefilled(made(), opening(1, max_tokens=max_tokens))
    launched(core)
    tell(core, back(Lane.DECODE, 1, 1))
    tail(core)
    effects = tell(core, UnitEnded((token,)))
    assert FreeKv((1,)) in effects
    assert told(effects) == [StepDone(1, (Sample(1, 1, token, finish),), 0, 0), Released((1,))]
    assert core.is_empty


def test_a_sequence_parks_at_its_limit_and_goes_on_when_it_is_extended() -> None:
    """The limit is reserved KV and credit at once; it never shrinks."""
    core = prefilled(made(), opening(1, token_limit=3))
    assert run(core) is None
    tell(core, ExtendSequence(1, 2))
    assert run(core) is None
    tell(core, ExtendSequence(1, 4))
    assert launched(core).rows == (Row(1, 3, 4),)
    tell(core, back(Lane.DECODE, 1, 1))
    tail(core)
    assert told(tell(core, UnitEnded((7,)))) == [StepDone(1, (Sample(1, 1, 7),), 0, 0)]
    assert run(core) is None


def test_an_extension_of_what_is_gone_is_ignored() -> None:
    """It crossed with a finish."""
    assert tell(made(), ExtendSequence(1, 9)) == []


def test_a_stale_frame_is_thrown_away() -> None:
    """Of a chunk or a step that is no longer here."""
    core = prefilled(made(), opening(1))
    for lane in Lane:
        assert tell(core, back(lane, 1, 3)) == [DropUnit(lane, 1)]


def test_a_released_row_is_skipped_and_goes_up_as_zeros() -> None:
    """In a mixed chunk that has yet to be computed; its tokens are not even read."""
    core = made()
    tell(core, opening(1), opening(2, 1), chunk(1, Row(1, 0, 3), Row(2, 0, 1)))
    assert tell(core, ReleaseSequences((1,))) == [FreeKv((1,)), Tell(Released((1,)))]
    unit = head(core)
    assert (unit.live, unit.token_ids) == ((False, True), (1,))
    tell(core, UnitEnded(), back(Lane.PREFILL, 1, 4))
    unit_back = tail(core)
    assert (unit_back.live, [draw.row for draw in unit_back.draws]) == ((False, True), [1])
    assert told(tell(core, UnitEnded((7,)))) == [ChunkDone(1, (Sample(2, 0, 7),), 0)]
    assert core.num_skipped == 2
    ran = core.take_timeline(now_us=0).ran
    assert [(unit.num_rows, unit.num_tokens, unit.num_skipped) for unit in ran] == [(1, 1, 1), (1, 1, 1)]


def test_a_chunk_that_nobody_waits_for_is_dropped_wherever_it_is() -> None:
    """Before its head, between two pieces, and while it is away."""
    waiting, halfway, away = made(), made(piece_tokens=2), made()
    for core in (waiting, halfway, away):
        tell(core, opening(1), chunk(1, Row(1, 0, 3)))
    for core in (halfway, away):
        head(core)
        tell(core, UnitEnded())
    for core in (waiting, halfway, away):
        assert tell(core, ReleaseSequences((1,))) == [FreeKv((1,)), Tell(Released((1,))), DropUnit(Lane.PREFILL, 1)]
        assert core.is_empty
        assert run(core) is None


def test_a_release_waits_for_the_unit_that_runs() -> None:
    """L45: KV is freed between two units; what the unit sampled is told, and then it is gone."""
    core = made()
    tell(core, opening(1), chunk(1, Row(1, 0, 3)))
    head(core)
    tell(core, UnitEnded(), back(Lane.PREFILL, 1, 3))
    tail(core)
    assert tell(core, ReleaseSequences((1,))) == []
    assert told(tell(core, UnitEnded((7,)))) == [ChunkDone(1, (Sample(1, 0, 7),), 0), Released((1,))]
    assert core.is_empty


def test_a_second_release_is_ignored() -> None:
    """It crossed with a finish, which was answered then."""
    core = prefilled(made(), opening(1))
    tell(core, ReleaseSequences((1,)))
    assert tell(core, ReleaseSequences((1,))) == []


def test_a_step_whose_rows_are_all_gone_needs_no_tail() -> None:
    """It came back for nobody; the rest of the mesh goes on at once."""
    core = prefilled(made(), opening(1))
    launched(core)
    tell(core, ReleaseSequences((1,)), back(Lane.DECODE, 1, 1))
    effects = core.poll(now_us=0)
    assert told(effects) == [StepDone(1, (), 0, 0)]
    assert core.is_empty
    assert not core.is_running


@pytest.mark.parametrize("lane", list(Lane))
def test_a_failure_from_the_cloud_fails_only_the_sequences_of_its_unit(lane: Lane) -> None:
    """L51: it is told with its stage; those sequences are skipped until the scheduler releases them."""
    core = prefilled(made(), opening(1))
    tell(core, opening(2), chunk(2, Row(2, 0, 3)))
    launched(core)
    head(core)
    tell(core, UnitEnded())
    unit = 2 if lane is Lane.PREFILL else 1
    frame = FrameArrived(lane, unit, 0, 0, 0, sent_us=0, failed=(unit,), code=ErrorCode.NOT_FINITE)
    (message,) = told(tell(core, frame))
    assert isinstance(message, UnitFailed)
    failed = 2 if lane is Lane.PREFILL else 1
    stage = Stage.SEGMENT if lane is Lane.PREFILL else Stage.STEP
    assert (message.sequences, message.code, message.stage) == ((failed,), ErrorCode.NOT_FINITE, stage)
    assert [number for number, sequence in core.sequences.items() if sequence.failed] == [failed]
    assert told(tell(core, ReleaseSequences((failed,)))) == [Released((failed,))]


def test_a_tail_that_fails_lets_the_other_sequences_step() -> None:
    """The turnaround goes on with those that are at home."""
    core = prefilled(made(), opening(1))
    launched(core)
    tell(core, opening(2), chunk(2, Row(2, 0, 3)))
    head(core)
    tell(core, UnitEnded(), back(Lane.PREFILL, 2, 3))
    tail(core)
    tell(core, UnitEnded((7,)), back(Lane.DECODE, 1, 1))
    tail(core)
    effects = tell(core, UnitEnded(failure=ErrorCode.COMPUTE))
    assert [effect.rows for effect in effects if isinstance(effect, RunHead)] == [(Row(2, 3, 4),)]
    messages = told(tell(core, UnitEnded()))
    assert UnitFailed((1,), ErrorCode.COMPUTE, Stage.TURNAROUND, step=1) in messages


def test_two_groups_share_the_sequences_fairly() -> None:
    """L54, m = 2: half of those that could step go into each; nobody is in both."""
    core = prefilled(made(TWO_GROUPS, piece_tokens=99), *(opening(number) for number in range(1, 6)))
    first, second = launched(core), launched(core)
    assert [row.sequence for row in first.rows] == [1, 2, 3]
    assert [row.sequence for row in second.rows] == [4, 5]
    assert run(core) is None


def test_a_step_holds_at_most_the_batch_size_of_the_plan() -> None:
    """L27: the oldest go on to their end; who is left out waits for a place that comes free."""
    plan = Plan(plan=1, kind=PlanKind.ONE_P_ONE_D, max_prefills=1, max_steps=1, max_batch_size=2)
    core = prefilled(made(plan, piece_tokens=99), *(opening(number) for number in range(1, 4)))
    assert [row.sequence for row in launched(core).rows] == [1, 2]
    tell(core, back(Lane.DECODE, 1, 2))
    tail(core)
    (next_head,) = [e for e in tell(core, UnitEnded((7, 7))) if isinstance(e, RunHead)]
    assert [row.sequence for row in next_head.rows] == [1, 2]


def test_serial_takes_turns_between_a_chunk_and_a_step() -> None:
    """One unit of the mesh is away: when a step comes back and a chunk waits, the chunk goes; then the step."""
    core = prefilled(made(SERIAL), opening(1))
    launched(core)
    tell(core, opening(2), opening(3), chunk(2, Row(2, 0, 3)))
    assert run(core) is None
    tell(core, back(Lane.DECODE, 1, 1))
    tail(core)
    tell(core, UnitEnded((7,)))
    assert head(core).lane is Lane.PREFILL
    tell(core, UnitEnded(), chunk(3, Row(3, 0, 3)))
    assert run(core) is None
    tell(core, back(Lane.PREFILL, 2, 3))
    tail(core)
    tell(core, UnitEnded((7,)))
    assert [row.sequence for row in launched(core).rows] == [1, 2]


def test_an_edge_that_holds_all_layers_sends_nothing() -> None:
    """Centralized: a head that is done is back at once, and nothing ever leaves."""
    core = made(holds_body=True)
    tell(core, opening(1), chunk(1, Row(1, 0, 3)))
    head(core)
    assert tell(core, UnitEnded()) == []
    tail(core)
    effects = tell(core, UnitEnded((7,)))
    head(core)
    effects += tell(core, UnitEnded())
    assert not [effect for effect in effects if isinstance(effect, SendPiece)]
    assert tail(core).lane is Lane.DECODE


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((chunk(1, Row(4, 0, 1)),), "sequence 4 has a row and was never opened"),
        ((opening(1), chunk(1, Row(1, 2, 3))), r"row \[2, 3\) of sequence 1 meets a head KV length of 0"),
    ],
)
def test_a_row_that_does_not_fit_its_sequence_is_an_error(events: tuple[EdgeEvent, ...], message: str) -> None:
    """Never opened, or not where the sequence ends; the session must end."""
    core = made()
    tell(core, *events)
    with pytest.raises(ProtocolError, match=message):
        run(core)


def test_what_breaks_the_order_of_things_is_an_error() -> None:
    """Numbers rise, counts of rows agree, and a unit ends once."""
    core = made()
    tell(core, opening(2), chunk(1, Row(2, 0, 3)))
    with pytest.raises(ProtocolError, match="sequence 1 is opened after 2"):
        tell(core, opening(1))
    with pytest.raises(ProtocolError, match="a unit ended and none was open"):
        tell(core, UnitEnded())
    head(core)
    tell(core, UnitEnded())
    with pytest.raises(ProtocolError, match="prefill unit 1 left with 3 rows and came back with 4"):
        tell(core, back(Lane.PREFILL, 1, 4))


def test_a_turnaround_tells_what_it_was_made_of() -> None:
    """When the step was back, how long its tail took and the drawing at its end, and which step left then."""
    core = prefilled(made(), opening(1))
    launched(core)
    tell(core, back(Lane.DECODE, 1, 1), now_us=50)
    assert run(core, now_us=60) is not None
    tell(core, UnitEnded((7,), sampling_us=3), now_us=80)
    tell(core, UnitEnded(), now_us=95)
    ran = core.take_timeline(now_us=100).ran[-1]
    assert (ran.step, ran.next_step, ran.ready_us, ran.begin_us, ran.end_us) == (1, 2, 50, 60, 95)
    assert (ran.tail_us, ran.sampling_us) == (20, 3)


def test_a_launch_has_no_tail_and_nothing_had_to_come_for_it() -> None:
    core = prefilled(made(), opening(1))
    launched(core)
    ran = core.take_timeline(now_us=100).ran[-1]
    assert (ran.step, ran.next_step, ran.ready_us, ran.tail_us) == (1, 1, None, 0)


def fusing(*, num_rows: int = 1, max_tokens: int = 9) -> EdgeCore:
    """One place, in which `num_rows` sequences have a step that is back, and chunk 9, of sequence 9, waits."""
    core = made(FUSES, holds_body=True)
    openings = [opening(number, max_tokens=max_tokens) for number in range(1, num_rows + 1)]
    tell(core, *openings, chunk(num_rows, *(Row(task.sequence, 0, 3) for task in openings)))
    head(core)
    tell(core, UnitEnded())
    tail(core)
    tell(core, UnitEnded((7,) * num_rows))
    launched(core)
    tell(core, opening(9), chunk(9, Row(9, 0, 3)))
    return core


def test_one_place_runs_a_step_and_a_head_in_one() -> None:
    """The tail of the step that is back, then its next head with the chunk's; the report says what it was made of."""
    core = fusing()
    assert tail(core).lane is Lane.DECODE
    unit = tell(core, UnitEnded((8,)), now_us=5)[-1]
    assert isinstance(unit, RunFusedHead)
    assert (unit.piece.unit, unit.piece.token_ids, unit.piece.lane) == (9, (1, 2, 3), Lane.PREFILL)
    assert (unit.step.rows, unit.step.token_ids, unit.step.lane) == ((Row(1, 4, 5),), (8,), Lane.DECODE)
    (done,) = told(tell(core, UnitEnded(), now_us=20))
    assert isinstance(done, StepDone)
    assert (done.step, done.samples) == (1, (Sample(1, 1, 8),))
    ran = core.take_timeline(now_us=30).ran[-1]
    assert (ran.stage, ran.chunk, ran.next_step, ran.tail_us) == (Stage.FUSED_HEAD, 9, 2, 5)
    assert (ran.start, ran.stop, ran.num_rows, ran.num_tokens) == (0, 3, 2, 4)
    assert ran.rider == Rider(1, 1, 1, ready_us=0)
    assert tail(core).lane is Lane.PREFILL


def test_a_fused_unit_whose_step_has_no_rows_left_is_a_head() -> None:
    """Every row finished in its tail: the chunk goes on, no step leaves."""
    core = fusing(max_tokens=2)
    tail(core)
    (unit,) = [effect for effect in tell(core, UnitEnded((8,))) if isinstance(effect, RunHead)]
    assert unit.lane is Lane.PREFILL
    tell(core, UnitEnded())
    ran = core.take_timeline(now_us=1).ran[-1]
    assert (ran.stage, ran.next_step, ran.num_rows) == (Stage.FUSED_HEAD, None, 1)
    assert ran.rider == Rider(1, 0, 0, ready_us=0)


def test_a_fused_head_that_fails_fails_chunk_and_step() -> None:
    """The sequences of both fail with the code, each told as what it was in; what the tail drew before still counts."""
    core = fusing()
    tail(core)
    tell(core, UnitEnded((8,)))
    effects = tell(core, UnitEnded(failure=ErrorCode.COMPUTE))
    assert told(effects) == [
        UnitFailed((9,), ErrorCode.COMPUTE, Stage.FUSED_HEAD, chunk=9),
        StepDone(1, (Sample(1, 1, 8),), 0, 0),
        UnitFailed((1,), ErrorCode.COMPUTE, Stage.FUSED_HEAD, step=2),
    ]
    tell(core, ReleaseSequences((1, 9)))
    assert core.is_empty


def test_a_step_tail_that_fails_in_a_fused_unit_leaves_the_chunk_alone() -> None:
    """Only the rows of that step fail; the head runs."""
    core = fusing()
    tail(core)
    effects = tell(core, UnitEnded(failure=ErrorCode.NOT_FINITE))
    assert [effect.lane for effect in effects if isinstance(effect, RunHead)] == [Lane.PREFILL]
    assert told(tell(core, UnitEnded()))[-1] == UnitFailed((1,), ErrorCode.NOT_FINITE, Stage.FUSED_HEAD, step=1)
    assert tail(core).unit == 9


def test_rows_that_are_gone_are_skipped_in_a_fused_head() -> None:
    """Those of the step in its tail, those of the chunk in its head; what ran and what was skipped is counted apart."""
    core = fusing(num_rows=2)
    tell(core, opening(10), chunk(10, Row(10, 0, 2)))
    tell(core, ReleaseSequences((2,)))
    unit = tail(core)
    assert unit.live == (True, False)
    both = tell(core, UnitEnded((8,)))[-1]
    assert isinstance(both, RunFusedHead)
    tell(core, UnitEnded())
    ran = core.take_timeline(now_us=1).ran[-1]
    assert (ran.num_rows, ran.num_tokens, ran.num_skipped, core.num_skipped) == (2, 4, 1, 1)


def test_a_chunk_that_overtook_is_back_first() -> None:
    """Rows rode in it: its tail runs although the chunk before it is still in the cloud."""
    core = made(FUSES)
    tell(core, opening(1), opening(2), chunk(1, Row(1, 0, 3)), chunk(2, Row(2, 0, 3)))
    for _ in range(2):
        head(core)
        tell(core, UnitEnded())
    tell(core, back(Lane.PREFILL, 2, 3))
    assert tail(core).unit == 2
