"""Which reason users are told where both task streams of a session end."""

from edgeweave.errors import LaneClosedError, UnavailableError
from edgeweave_scheduler.keeper import reason_of
from edgeweave_scheduler.task_stream import ReasonLostError

LOST = ReasonLostError("the task stream to the edge engine ended while a task was being sent")
CLOSED = LaneClosedError("the decode lane was closed by its peer")


def test_a_reason_that_was_told_is_the_one() -> None:
    told = UnavailableError("the decode lane ended: reset")
    assert reason_of([CLOSED, told]) is told
    assert reason_of([told, LOST]) is told
    assert reason_of([CLOSED]) is CLOSED


def test_where_nobody_knows_all_that_was_noticed_is_told() -> None:
    """A task stream whose status was lost may have broken itself, or end because a lane did: no end says which."""
    assert str(reason_of([CLOSED, LOST])) == f"{LOST}; {CLOSED}"
