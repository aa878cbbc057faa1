"""The scheduler's core, one behaviour at a time."""

from dataclasses import replace

import pytest

from edgeweave.errors import (
    DeadlineError,
    InvalidRequestError,
    OverloadedError,
    PromptTooLongError,
    SessionLostError,
    UnavailableError,
    UnitFailedError,
)
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import (
    Chunk,
    ErrorCode,
    ExtendSequence,
    FinishReason,
    KvCapacity,
    OpenSequence,
    Plan,
    PlanKind,
    Released,
    ReleaseSequences,
    Row,
    Stage,
    UnitFailed,
)
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.scheduler_events import Cancel, Disconnected, StopAdmission
from fakes.driven import BODY, DrivenScheduler, sample

LIMITS = Limits(max_seq_len=64, chunk_tokens=8)
ONE_P = PlanRequest(PlanKind.ONE_P_ONE_D)


def rows_of(scheduler: DrivenScheduler) -> list[tuple[Row, ...]]:
    """Rows of the chunks that were issued by the last call."""
    return [chunk.rows for chunk in scheduler.tasks(Side.EDGE, Chunk)]


# ---- admission and refusal


def test_a_request_is_admitted_with_its_first_chunk() -> None:
    """L27: while k chunks are away nobody is opened and nothing is reserved; then both happen at once."""
    scheduler = DrivenScheduler(plan=ONE_P).connect().ask("a")
    assert len(scheduler.tasks(Side.EDGE, OpenSequence)) == 1
    assert rows_of(scheduler) == [(Row(1, 0, 3),)]
    scheduler.ask("b")
    assert scheduler.effects == []
    assert list(scheduler.session.sequences) == [1]
    scheduler.chunk_done(1, sample(1, 0))
    assert rows_of(scheduler) == [(Row(2, 0, 3),)]
    assert set(scheduler.session.accounts.sides[Side.CLOUD].reserved) == {1, 2}


def test_a_chunk_goes_to_both_sides_as_the_same_message_and_covers_the_body() -> None:
    """L05, L19: one message, its cut covers each body layer once, and only the edge gets tokens."""
    scheduler = DrivenScheduler(plan=PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=4)).connect().ask("a", 3)
    (chunk,) = scheduler.tasks(Side.CLOUD, Chunk)
    assert scheduler.tasks(Side.EDGE, Chunk) == [chunk]
    layers = [layer for segment in chunk.segments for layer in range(segment.start, segment.stop)]
    assert layers == list(range(BODY.start, BODY.stop))
    assert [segment.num_layers for segment in chunk.segments] == [2, 2, 1, 1]
    assert scheduler.tasks(Side.CLOUD, OpenSequence) == []


@pytest.mark.parametrize(("kind", "k"), [(PlanKind.SERIAL, 1), (PlanKind.ONE_P_ONE_D, 1), (PlanKind.TWO_P_ONE_D, 2)])
def test_at_most_k_chunks_are_away(kind: PlanKind, k: int) -> None:
    """L07, L08, L11: a long prompt's chunks are issued one after another until k are away."""
    scheduler = DrivenScheduler(plan=PlanRequest(kind)).connect().ask("a", 30)
    assert len(rows_of(scheduler)) == k
    assert len(scheduler.session.chunks) == k
    scheduler.chunk_done(1)
    assert rows_of(scheduler) == [(Row(1, 8 * k, 8 * k + 8),)]


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers() -> None:
    """L30: what was asked, what it makes, and the limit."""
    error = DrivenScheduler().connect().ask("a", 60, max_tokens=5).refusals["a"]
    assert isinstance(error, PromptTooLongError)
    assert str(error).startswith("a prompt of 60 tokens with max_tokens 5 makes 65, and max_seq_len is 64")


def test_a_prompt_that_no_side_can_hold_is_refused_with_the_capacities() -> None:
    """L30, L32: the smaller side decides, in its own blocks; the largest that fits is taken."""
    small = replace_kv(edge=KvCapacity(4, 100), cloud=KvCapacity(2, 6))
    error = small.ask("a", 6, max_tokens=8).refusals["a"]
    assert isinstance(error, PromptTooLongError)
    assert "edge 100 x 4 tokens, cloud 6 x 2 tokens" in str(error)
    assert small.ask("b", 6, max_tokens=7).refusals == {}


def replace_kv(*, edge: KvCapacity, cloud: KvCapacity, limits: Limits = LIMITS) -> DrivenScheduler:
    """A mesh with these blocks, where one step may hold all."""
    return DrivenScheduler(limits=limits, edge_kv=edge, cloud_kv=cloud).connect()


def test_a_full_queue_refuses_and_says_how_full() -> None:
    """At `max_waiting` requests the next is told to come again; those who wait stay."""
    scheduler = DrivenScheduler(limits=replace(LIMITS, max_waiting=1), plan=ONE_P).connect().ask("a").ask("b")
    error = scheduler.ask("c").refusals["c"]
    assert isinstance(error, OverloadedError)
    assert "1 requests wait already" in str(error)
    assert set(scheduler.core.requests) == {"a", "b"}


def test_an_id_in_use_is_refused_and_the_first_goes_on() -> None:
    """Two open requests never share an id."""
    scheduler = DrivenScheduler().connect().ask("a")
    assert isinstance(scheduler.ask("a").refusals["a"], InvalidRequestError)
    assert scheduler.chunk_done(1, sample(1, 0)).emits == [("a", 0, 9, None)]


def test_without_a_session_requests_are_refused_with_the_reason() -> None:
    """L63: nothing hangs; the reason is that of the last session's end."""
    scheduler = DrivenScheduler()
    assert "no session yet" in str(scheduler.ask("a").refusals["a"])
    scheduler.connect().tell(Disconnected("the decode lane broke"))
    error = scheduler.ask("a").refusals["a"]
    assert isinstance(error, UnavailableError)
    assert "the decode lane broke" in str(error)


def test_while_draining_open_requests_end_and_new_ones_are_refused_until_the_next_session() -> None:
    """L52: admission stops with its reason, what is open goes on, and the next session serves again."""
    scheduler = DrivenScheduler().connect().ask("a").tell(StopAdmission("the edge stops"))
    assert "the edge stops" in str(scheduler.ask("b").refusals["b"])
    assert scheduler.chunk_done(1, sample(1, 0)).emits == [("a", 0, 9, None)]
    scheduler.tell(Disconnected("it stopped")).connect(2)
    assert scheduler.ask("c").refusals == {}


# ---- chunks, tokens, finish


def test_waiting_requests_share_a_chunk_with_what_goes_on() -> None:
    """L22, L27: a chunk is formed as late as k allows, so that batches fill: first what is open, then new ones."""
    scheduler = DrivenScheduler(plan=ONE_P).connect().ask("a", 10).ask("b", 3).ask("c", 2)
    scheduler.chunk_done(1)
    assert rows_of(scheduler) == [(Row(1, 8, 10), Row(2, 0, 3), Row(3, 0, 2))]


def test_a_long_prompt_has_chunks_of_its_own() -> None:
    """L28: it neither joins others nor lets them join, and its order is kept."""
    limits = replace(LIMITS, long_prompt_tokens=12)
    scheduler = DrivenScheduler(limits=limits, plan=ONE_P).connect().ask("a", 2).ask("long", 12).ask("b", 3)
    scheduler.chunk_done(1, sample(1, 0))
    assert rows_of(scheduler) == [(Row(2, 0, 8),)]
    assert rows_of(scheduler.chunk_done(2)) == [(Row(2, 8, 12),)]
    assert rows_of(scheduler.chunk_done(3, sample(2, 0))) == [(Row(3, 0, 3),)]


def test_no_more_sequences_run_than_steps_can_hold_and_wait_for_a_place() -> None:
    """L27: open sequences are at most m x max_batch_size and those that are prefilled ahead."""
    limits = replace(LIMITS, max_batch_size=2, prefill_ahead=0)
    scheduler = DrivenScheduler(limits=limits).connect().decoding("a", "b").ask("c")
    assert rows_of(scheduler) == []
    scheduler.step_done(1, sample(1, 1, finish=FinishReason.STOP))
    assert rows_of(scheduler) == [(Row(3, 0, 3),)]


@pytest.mark.parametrize(("prefill_ahead", "expected"), [(1, 1), (None, 2)])
def test_sequences_are_prefilled_ahead_of_a_place_in_a_step(prefill_ahead: int | None, expected: int) -> None:
    """A place that comes free is taken at once; unless it is said otherwise, as many as a step holds wait for one."""
    limits = replace(LIMITS, max_batch_size=2, prefill_ahead=prefill_ahead)
    scheduler = DrivenScheduler(limits=limits).connect().decoding("a", "b").ask("c").ask("d").ask("e")
    assert len(scheduler.core.waiting) == 3 - expected


def test_each_sampled_token_reaches_the_client_once_and_nothing_is_dispatched_for_it() -> None:
    """L31, L34: decode is a standing order; a step that is done sends nothing to any engine."""
    scheduler = DrivenScheduler().connect().decoding("a", max_tokens=4)
    scheduler.step_done(1, sample(1, 1, 5))
    assert scheduler.emits == [("a", 1, 5, None)]
    assert len(scheduler.effects) == 1


def test_a_finish_is_told_to_the_cloud_alone_and_at_once() -> None:
    """L44: the edge finished it by itself; blocks are free on a side when that side has said so."""
    scheduler = DrivenScheduler().connect().decoding("a")
    scheduler.step_done(1, sample(1, 1, 5, FinishReason.LENGTH))
    assert scheduler.emits == [("a", 1, 5, FinishReason.LENGTH)]
    assert scheduler.tasks(Side.CLOUD, ReleaseSequences) == [ReleaseSequences((1,))]
    assert scheduler.tasks(Side.EDGE, ReleaseSequences) == []
    sides = scheduler.session.accounts.sides
    scheduler.said(Side.EDGE, Released((1,)))
    assert sides[Side.EDGE].num_free == 100
    assert sides[Side.CLOUD].num_free < 100
    scheduler.said(Side.CLOUD, Released((1,)))
    assert sides[Side.CLOUD].num_free == 100
    assert scheduler.core.is_idle


def test_a_side_that_says_released_twice_frees_once() -> None:
    """L46: a number is never used again, so a second answer means nothing."""
    scheduler = DrivenScheduler().connect().decoding("a").tell(Cancel("a"))
    scheduler.said(Side.EDGE, Released((1,))).said(Side.EDGE, Released((1,)))
    assert scheduler.session.accounts.sides[Side.EDGE].num_free == 100
    assert 1 in scheduler.session.sequences
    scheduler.released(1).released(1)
    assert scheduler.core.is_idle


def test_an_output_index_out_of_turn_ends_the_session() -> None:
    """L11: a token that does not follow on what the client has is a bug of an engine, with both indices."""
    scheduler = DrivenScheduler().connect().decoding("a").step_done(1, sample(1, 3))
    assert scheduler.endings == ["sequence 1 sampled output 3, expected 1"]
    assert scheduler.emits == []


# ---- abort and deadlines


def test_an_abort_while_waiting_touches_no_engine() -> None:
    """L45: it was never opened."""
    scheduler = DrivenScheduler(plan=ONE_P).connect().ask("a").ask("b").tell(Cancel("b"))
    assert scheduler.effects == []
    assert list(scheduler.core.requests) == ["a"]


def test_an_abort_in_prefill_frees_both_sides_and_the_chunk_leaves_the_count() -> None:
    """L45: one message to both sides at once; with its last sequence a chunk is no longer in flight."""
    scheduler = DrivenScheduler(plan=ONE_P).connect().ask("a").ask("b").tell(Cancel("a"))
    for side in Side:
        assert scheduler.tasks(side, ReleaseSequences) == [ReleaseSequences((1,))]
    assert rows_of(scheduler) == [(Row(2, 0, 3),)]
    assert list(scheduler.session.chunks) == [2]
    assert scheduler.chunk_done(1, sample(1, 0)).emits == []


def test_a_mixed_chunk_stays_in_flight_while_any_of_its_sequences_lives() -> None:
    """L45: the others go on; the sample of the one that left is ignored."""
    scheduler = DrivenScheduler(plan=ONE_P).connect().ask("x", 1).ask("a").ask("b")
    scheduler.chunk_done(1, sample(1, 0)).tell(Cancel("a"))
    assert list(scheduler.session.chunks) == [2]
    assert scheduler.chunk_done(2, sample(2, 0), sample(3, 0)).emits == [("b", 0, 9, None)]


def test_an_abort_in_decode_ignores_what_was_under_way() -> None:
    """L45: the samples of steps that had left are ignored until both sides have freed it."""
    scheduler = DrivenScheduler().connect().decoding("a").tell(Cancel("a"))
    assert len(scheduler.tasks(Side.CLOUD, ReleaseSequences)) == 1
    assert scheduler.step_done(1, sample(1, 1)).effects == []
    assert scheduler.released(1).core.is_idle


def test_a_second_abort_and_one_after_the_finish_are_harmless() -> None:
    """Neither sends anything."""
    scheduler = DrivenScheduler().connect().decoding("a", "b").tell(Cancel("a"))
    assert scheduler.tell(Cancel("a")).effects == []
    scheduler.step_done(1, sample(2, 1, finish=FinishReason.STOP))
    assert scheduler.tell(Cancel("b")).effects == []


def test_a_request_ends_at_its_deadline_and_is_freed() -> None:
    """The error says how long and how far; the shell is told when to look."""
    scheduler = DrivenScheduler().connect().ask("a", deadline_us=50_000).chunk_done(1, sample(1, 0))
    assert scheduler.core.wake_us() == 50_000
    assert scheduler.poll(now_us=49_999).effects == []
    error = scheduler.poll(now_us=50_000).refusals["a"]
    assert isinstance(error, DeadlineError)
    assert str(error) == "the deadline passed after 50 ms and 1 tokens"
    assert scheduler.tasks(Side.EDGE, ReleaseSequences) == [ReleaseSequences((1,))]


@pytest.mark.parametrize("is_step", [False, True])
def test_a_unit_that_is_away_too_long_ends_the_session(*, is_step: bool) -> None:
    """A chunk by its own deadline, a step by the time since its sequence moved last."""
    scheduler = DrivenScheduler(limits=replace(LIMITS, unit_deadline_ms=7)).connect()
    scheduler = scheduler.decoding("a") if is_step else scheduler.ask("a")
    assert scheduler.core.wake_us() == 7_000
    assert scheduler.poll(now_us=6_999).endings == []
    assert scheduler.poll(now_us=7_000).endings == ["a unit was away for more than 7 ms"]


def test_a_release_that_is_not_answered_ends_the_session() -> None:
    """Else an engine that hangs would keep the blocks, and who waits for them, for ever."""
    scheduler = DrivenScheduler(limits=replace(LIMITS, unit_deadline_ms=7)).connect().decoding("a")
    scheduler.now_us = 2_000
    scheduler.tell(Cancel("a")).said(Side.EDGE, Released((1,)))
    assert scheduler.core.wake_us() == 9_000
    assert scheduler.poll(now_us=8_999).endings == []
    assert len(scheduler.poll(now_us=9_000).endings) == 1


def test_the_end_of_a_session_is_asked_for_once() -> None:
    """Its streams take a while to close; until then nothing is due."""
    scheduler = DrivenScheduler(limits=replace(LIMITS, unit_deadline_ms=7)).connect().ask("a")
    assert len(scheduler.poll(now_us=7_000).endings) == 1
    assert scheduler.poll(now_us=7_001).endings == []
    assert scheduler.core.wake_us() is None


def test_a_plan_with_more_in_flight_than_the_engines_stage_is_refused() -> None:
    """Else no later session could begin; the plan before stays."""
    scheduler = DrivenScheduler(limits=replace(LIMITS, max_prefill_tokens=30_000)).connect()
    before = scheduler.core.plan
    with pytest.raises(InvalidRequestError, match="max_prefills 8 stages 270000 tokens and the engines hold 262144"):
        scheduler.tell(PlanRequest(PlanKind.TWO_P_ONE_D, max_prefills=8))
    assert (scheduler.core.plan, scheduler.core.planner.wanted.max_prefills) == (before, None)
    scheduler.tell(PlanRequest(PlanKind.TWO_P_ONE_D, max_prefills=7))
    assert scheduler.core.plan.max_prefills == 7


def test_a_failed_unit_ends_only_its_requests_and_names_the_engine() -> None:
    """L51: unit, engine and kind reach the client; both sides free what failed; others go on."""
    scheduler = DrivenScheduler().connect().decoding("a", "b")
    scheduler.said(Side.EDGE, UnitFailed((1,), ErrorCode.OUT_OF_MEMORY, Stage.STEP, step=4))
    error = scheduler.refusals["a"]
    assert isinstance(error, UnitFailedError)
    assert str(error) == "the step of step 4 failed in the cloud engine: out of memory; see its log"
    assert scheduler.tasks(Side.CLOUD, ReleaseSequences) == [ReleaseSequences((1,))]
    assert scheduler.step_done(4, sample(2, 1)).emits == [("b", 1, 9, None)]


# ---- growth and preemption


def test_a_limit_is_extended_while_a_whole_block_is_left() -> None:
    """The edge hears of more room at least one block before it would have to stop."""
    scheduler = replace_kv(edge=KvCapacity(4, 100), cloud=KvCapacity(4, 100)).ask("a", 3, max_tokens=30)
    (opened,) = scheduler.tasks(Side.EDGE, OpenSequence)
    assert opened.token_limit == 8
    limit, num_tokens = opened.token_limit, 3
    for index in range(12):
        scheduler.chunk_done(1, sample(1, 0)) if index == 0 else scheduler.step_done(index, sample(1, index))
        num_tokens += 1
        for extension in scheduler.tasks(Side.EDGE, ExtendSequence):
            assert extension.token_limit == limit + 4
            limit = extension.token_limit
        assert limit - num_tokens >= 4
    assert scheduler.tasks(Side.CLOUD, ExtendSequence) == []


def tight() -> DrivenScheduler:
    """Two sequences that decode in ten blocks of one token on each side; the first step fills them."""
    scheduler = replace_kv(edge=KvCapacity(1, 10), cloud=KvCapacity(1, 10)).decoding("old", "new")
    assert scheduler.core.num_preemptions == 0
    return scheduler.step_done(1, sample(1, 1), sample(2, 1))


def test_where_blocks_are_short_the_newest_is_preempted_and_waits_in_front() -> None:
    """L33: both sides free it, its request keeps its output, and the oldest goes on."""
    scheduler = tight()
    assert scheduler.core.num_preemptions == 1
    for side in Side:
        assert scheduler.tasks(side, ReleaseSequences) == [ReleaseSequences((2,))]
    scheduler.ask("late", 1)
    assert [request.request_id for request in scheduler.core.waiting] == ["new", "late"]
    assert scheduler.step_done(2, sample(1, 2), sample(2, 2)).emits == [("old", 2, 9, None)]


def test_a_preempted_request_is_recomputed_under_a_new_number_with_the_same_tokens() -> None:
    """L33: prompt and output together are the new prompt; the next token follows on the last."""
    scheduler = tight().released(2)
    scheduler.step_done(2, sample(1, 2, finish=FinishReason.STOP))
    scheduler.released(1)
    opened = scheduler.session.sequences[3].opening()
    assert (opened.sequence, opened.token_ids, opened.num_prompt_tokens) == (3, (1, 2, 3, 9, 9), 3)
    (number,) = scheduler.session.chunks
    assert scheduler.chunk_done(number, sample(3, 2, 5)).emits == [("new", 2, 5, None)]


def test_the_oldest_is_never_preempted() -> None:
    """What is short comes from others, so the oldest always reaches its end."""
    scheduler = tight().released(2)
    for index in range(2, 7):
        scheduler.step_done(index, sample(1, index))
        assert scheduler.session.live[0].number == 1
    assert scheduler.step_done(7, sample(1, 7, finish=FinishReason.LENGTH)).emits[-1][0] == "old"
    assert scheduler.core.num_preemptions == 1


def test_with_few_free_blocks_nothing_new_is_admitted_while_anything_runs() -> None:
    """L10: under 5 % of a side's blocks; once nothing runs, the first in line is admitted."""
    limits = replace(LIMITS, chunk_tokens=64)
    scheduler = replace_kv(edge=KvCapacity(1, 40), cloud=KvCapacity(1, 1000), limits=limits)
    scheduler.decoding("a", num_prompt=38, max_tokens=2).ask("b", 1, max_tokens=1)
    assert rows_of(scheduler) == []
    scheduler.step_done(1, sample(1, 1, finish=FinishReason.LENGTH))
    assert rows_of(scheduler) == [(Row(2, 0, 1),)]


# ---- sessions and plans


def test_a_lost_session_ends_every_request_with_its_reason() -> None:
    """L50: those that wait and those that run; the accounts of the next session are full and its number its own."""
    scheduler = DrivenScheduler(plan=ONE_P).connect().ask("a").ask("b").tell(Disconnected("the prefill lane broke"))
    assert set(scheduler.refusals) == {"a", "b"}
    for error in scheduler.refusals.values():
        assert isinstance(error, SessionLostError)
        assert "the prefill lane broke" in str(error)
    scheduler.connect(2)
    assert scheduler.session.number == 2
    assert scheduler.session.accounts.sides[Side.EDGE].num_free == 100
    assert scheduler.core.is_idle


def test_what_an_engine_says_after_its_session_is_ignored() -> None:
    """A late message of a session that is gone changes nothing."""
    scheduler = DrivenScheduler().connect().ask("a").tell(Disconnected("gone"))
    assert scheduler.chunk_done(1, sample(1, 0)).effects == []


def test_a_plan_change_needs_no_drain() -> None:
    """It goes to both sides at once; k shrinks by not issuing, a chunk keeps its cut."""
    scheduler = DrivenScheduler(plan=PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=2)).connect().ask("a", 40)
    before = dict(scheduler.session.chunks)
    scheduler.tell(PlanRequest(PlanKind.SERIAL, num_segments=3))
    for side in Side:
        assert [plan.kind for plan in scheduler.tasks(side, Plan)] == [PlanKind.SERIAL]
    assert scheduler.session.chunks == before
    assert rows_of(scheduler.chunk_done(1)) == []
    scheduler.chunk_done(2)
    (chunk,) = scheduler.tasks(Side.CLOUD, Chunk)
    assert (len(chunk.segments), chunk.plan) == (3, scheduler.core.plan.plan)


def test_a_plan_that_contradicts_itself_changes_nothing() -> None:
    """The caller hears of it, and the plan before stays in force."""
    scheduler = DrivenScheduler().connect()
    before = scheduler.core.plan
    with pytest.raises(InvalidRequestError):
        scheduler.tell(PlanRequest(PlanKind.SERIAL, max_prefills=2))
    assert scheduler.core.plan == before
    assert scheduler.core.planner.wanted.kind is PlanKind.TWO_P_ONE_D


def test_the_decode_return_is_replanned_at_most_once_a_second_and_only_if_it_moved() -> None:
    """L15: link and measured turnaround; engines order by it and never set it."""
    scheduler = DrivenScheduler(rtt_us=100).connect().decoding("a", max_tokens=40)
    scheduler.now_us = 1_000_000
    scheduler.step_done(1, sample(1, 1), turnaround_us=200)
    assert [plan.decode_return_us for plan in scheduler.tasks(Side.CLOUD, Plan)] == [300]
    scheduler.now_us = 1_999_999
    assert scheduler.step_done(2, sample(1, 2), turnaround_us=700).tasks(Side.CLOUD, Plan) == []
    scheduler.now_us = 2_000_000
    scheduler.step_done(3, sample(1, 3), turnaround_us=700)
    assert [plan.decode_return_us for plan in scheduler.tasks(Side.EDGE, Plan)] == [417]
    scheduler.now_us = 3_000_000
    assert scheduler.step_done(4, sample(1, 4), turnaround_us=320).tasks(Side.CLOUD, Plan) == []


def test_one_stalled_turnaround_moves_the_decode_return_little() -> None:
    """A turnaround many times the usual one counts as four times it at most."""
    scheduler = DrivenScheduler(rtt_us=100).connect().decoding("a", max_tokens=40)
    scheduler.step_done(1, sample(1, 1), turnaround_us=200)
    scheduler.now_us = 5_000_000
    scheduler.step_done(2, sample(1, 2), turnaround_us=900_000)
    assert [plan.decode_return_us for plan in scheduler.tasks(Side.CLOUD, Plan)] == [375]


def test_a_centralized_mesh_has_one_side() -> None:
    """Without a cloud nothing is sent there, a chunk has no segments, and one answer frees all."""
    scheduler = DrivenScheduler(cloud_kv=None).connect().ask("a")
    (chunk,) = scheduler.tasks(Side.EDGE, Chunk)
    assert chunk.segments == ()
    assert scheduler.tasks(Side.CLOUD, object) == []
    scheduler.chunk_done(1, sample(1, 0, finish=FinishReason.STOP))
    assert scheduler.tasks(Side.CLOUD, object) == []
    assert scheduler.said(Side.EDGE, Released((1,))).core.is_idle
