"""What the scheduler's core counts of requests: how they ended, and how long they waited."""

import pytest

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Chunk, ErrorCode, FinishReason, KvCapacity, Stage, UnitFailed
from edgeweave.interleave.recent_times import Quantiles, RecentTimes
from edgeweave.interleave.request_totals import RequestEnd
from edgeweave.interleave.requests import Request
from edgeweave.interleave.scheduler_events import Cancel, Disconnected
from fakes.driven import DrivenScheduler, sample


@pytest.fixture
def mesh() -> DrivenScheduler:
    """A session that serves."""
    return DrivenScheduler().connect()


def only(recent: RecentTimes, *, now_us: int) -> int | None:
    """The one time that is known, `None` without any."""
    quantiles = recent.quantiles(now_us=now_us)
    assert quantiles is None or quantiles == Quantiles(1, *[quantiles.p50_us] * 3)
    return quantiles.p50_us if quantiles is not None else None


def ends(mesh: DrivenScheduler) -> dict[RequestEnd, int]:
    """The ends that occurred."""
    return {end: number for end, number in mesh.core.request_totals.ends.items() if number}


def test_times_of_a_request_are_taken_when_they_are_known(mesh: DrivenScheduler) -> None:
    """Queue at admission, first token when it comes, time per token at the end: the mean of those after the first."""
    totals = mesh.core.request_totals
    mesh.now_us = 100
    mesh.ask("a")
    assert (only(totals.queue, now_us=100), only(totals.first_token, now_us=100)) == (0, None)
    mesh.now_us = 350
    mesh.chunk_done(1, sample(1, 0))
    assert (only(totals.first_token, now_us=350), only(totals.per_token, now_us=350)) == (250, None)
    mesh.now_us = 400
    mesh.step_done(1, sample(1, 1))
    mesh.now_us = 550
    mesh.step_done(2, sample(1, 2, finish=FinishReason.STOP))
    assert only(totals.per_token, now_us=550) == (550 - 350) / 2
    assert only(totals.first_token, now_us=550) == 250
    assert ends(mesh) == {RequestEnd.STOP: 1}


def test_a_request_waits_until_its_first_chunk_is_formed() -> None:
    """Where chunks in flight are as many as may be, the queue is what it waited for the next one."""
    mesh = DrivenScheduler(limits=Limits(max_seq_len=64, max_prefill_batch_size=1, chunk_tokens=8)).connect()
    for name in ("a", "b", "c"):
        mesh.ask(name)
    assert [len(mesh.core.waiting), len(mesh.session.chunks)] == [1, 2]
    mesh.now_us = 700
    mesh.chunk_done(1, sample(1, 0))
    quantiles = mesh.core.request_totals.queue.quantiles(now_us=700)
    assert quantiles == Quantiles(3, 0, 700, 700)


def test_an_output_of_one_token_has_no_time_per_token(mesh: DrivenScheduler) -> None:
    """It ends with its first."""
    mesh.ask("a", max_tokens=1).chunk_done(1, sample(1, 0, finish=FinishReason.LENGTH))
    assert mesh.core.request_totals.per_token.quantiles(now_us=0) is None
    assert ends(mesh) == {RequestEnd.LENGTH: 1}


def test_what_was_generated_elsewhere_counts_for_nothing(mesh: DrivenScheduler) -> None:
    """A resumed request has its first token when the first new one comes, and its rate is that of the new ones."""
    totals = mesh.core.request_totals
    mesh.tell(Request("a", (1, 2), 8, output=[5, 6], arrived_us=0))
    mesh.now_us = 300
    mesh.chunk_done(1, sample(1, 2))
    assert only(totals.first_token, now_us=300) == 300
    mesh.now_us = 500
    mesh.step_done(1, sample(1, 3, finish=FinishReason.STOP))
    assert only(totals.per_token, now_us=500) == 200


def test_a_preempted_request_is_admitted_and_answered_once() -> None:
    """Its second attempt is the same request: what its user waits for then is in its time per token."""
    capacity = KvCapacity(1, 10)
    mesh = DrivenScheduler(edge_kv=capacity, cloud_kv=capacity).connect()
    mesh.decoding("old", "new")
    totals = mesh.core.request_totals
    mesh.now_us = 100
    mesh.step_done(1, sample(1, 1), sample(2, 1))
    assert mesh.core.num_preemptions == 1
    mesh.released(2)
    mesh.step_done(2, sample(1, 2, finish=FinishReason.STOP))
    mesh.now_us = 500
    mesh.released(1)
    (number,) = mesh.session.chunks
    mesh.chunk_done(number, sample(3, 2, finish=FinishReason.STOP))
    assert totals.queue.quantiles(now_us=500) == Quantiles(2, 0, 0, 0)
    assert totals.first_token.quantiles(now_us=500) == Quantiles(2, 0, 0, 0)
    assert totals.per_token.quantiles(now_us=500) == Quantiles(2, 50, 250, 250)


def test_every_end_has_its_count(mesh: DrivenScheduler) -> None:
    """Whoever leaves, is late, fails, is lost with the session or is not taken in is counted once, as that."""
    mesh.ask("leaves").tell(Cancel("leaves")).tell(Cancel("leaves"))
    mesh.ask("is late", deadline_us=10).poll(now_us=10)
    mesh.ask("fails")
    (chunk,) = mesh.tasks(Side.EDGE, Chunk)
    failed = UnitFailed(tuple(row.sequence for row in chunk.rows), ErrorCode.COMPUTE, Stage.HEAD, chunk=chunk.chunk)
    mesh.said(Side.EDGE, failed)
    mesh.ask("is lost").ask("is lost, too").tell(Disconnected("the link broke"))
    mesh.ask("is refused")
    assert ends(mesh) == {
        RequestEnd.CANCELLED: 1,
        RequestEnd.DEADLINE: 1,
        RequestEnd.FAILED: 1,
        RequestEnd.LOST: 2,
        RequestEnd.REFUSED: 1,
    }


def test_ends_by_themselves_are_the_finish_reasons() -> None:
    """A finish reason is turned into an end by its number."""
    assert [RequestEnd(reason).name for reason in FinishReason] == [reason.name for reason in FinishReason]
