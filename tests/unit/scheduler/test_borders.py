"""What nobody foresaw ends one session, and never the loop that opens the next."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from edgeweave.clock import ManualClock
from edgeweave.errors import ProtocolError
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Plan, PlanKind
from edgeweave.interleave.plan_change import PlanChange
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import Replanned
from edgeweave.settings import SchedulerSettings
from edgeweave_scheduler.driver import Driver
from edgeweave_scheduler.keeper import SessionKeeper, SessionState
from edgeweave_scheduler.task_stream import TaskStream


class SilentCall:
    """A call to an engine that says nothing and takes everything."""

    async def read(self) -> Any:
        return await asyncio.get_running_loop().create_future()

    async def write(self, message: object) -> None:
        """Take a message."""

    def cancel(self) -> bool:
        return True


def unwritable(task: object) -> object:
    """No message is made of this task."""
    raise ValueError(f"{task} is out of range")


async def test_a_task_that_cannot_be_sent_ends_the_stream() -> None:
    """The engine would wait for it, and everyone for the engine."""
    stream = TaskStream(Side.EDGE, target="edge:1", call=SilentCall(), encode=unwritable, decode=unwritable)
    stream.send("a task")
    reason = await stream.carry(lambda _report: None)
    assert isinstance(reason, ProtocolError)
    assert "a task for the task stream to the edge engine at edge:1 could not be sent" in str(reason)


async def test_an_unforeseen_error_is_told_and_the_next_session_is_tried() -> None:
    """Operators read of it; the scheduler goes on."""
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    driver = Driver(SchedulerCore(Limits(), PlanRequest(PlanKind.SERIAL), max_grace_us=0), clock=ManualClock())
    settings = SchedulerSettings(edge="edge:1", connect_backoff_s=0.001)
    keeper = SessionKeeper(driver, settings=settings, now_ms=_no_time, on_state=states.put_nowait)
    running = asyncio.create_task(keeper.run())
    seen = [await states.get() for _ in range(4)]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == [SessionState.CONNECTING, SessionState.DOWN] * 2
    assert "an internal error in the scheduler, see its log" in driver.core.down_reason


def _no_time() -> int:
    raise RuntimeError("this clock is broken")


async def test_a_change_of_plan_is_a_line_in_the_log_with_what_is_predicted() -> None:
    """Operators see the values that were chosen, and why they should be better."""
    driver = Driver(SchedulerCore(Limits(), PlanRequest(PlanKind.SERIAL), max_grace_us=0), clock=ManualClock())
    plan = Plan(7, PlanKind.ADAPTIVE, max_prefills=3, max_steps=2, max_batch_size=8, fill_to_rows=17)
    with capture_logs() as logs:
        driver._carry_out(None, [Replanned(PlanChange(plan, rows_per_s=220.0, rows_per_s_before=200.0))], 0)  # noqa: SLF001 - the core decides when
    (line,) = logs
    assert line["event"] == "plan_changed"
    assert (line["plan"], line["kind"], line["max_steps"], line["fill_to_rows"]) == (7, "adaptive", 2, 17)
    assert (line["predicted_rows_per_s"], line["predicted_gain"]) == (220.0, 0.1)
