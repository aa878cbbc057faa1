"""What becomes of measured times: when a plan changes, what engines hear of it, and what watchers do."""

from dataclasses import replace

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Chunk, Plan, PlanKind, Stage, Timeline, UnitRan
from edgeweave.interleave.plans import PlanRequest
from edgeweave.interleave.scheduler_events import Replanned
from fakes.driven import BODY, DrivenScheduler, sample

ADAPTIVE = PlanRequest(PlanKind.ADAPTIVE)

UNIT = UnitRan(
    Stage.STEP, BODY.start, BODY.stop, 0, 0, prefill_ready=True, decode_ready=True, num_rows=1, num_tokens=1, plan=1
)


def ran(*, layer_us: int, step_us: int, plan: int) -> Timeline:
    """Return a report of four segments of the whole body and four steps."""
    segment_us = layer_us * BODY.num_layers
    segment = replace(UNIT, stage=Stage.SEGMENT, end_us=segment_us, num_tokens=3, chunk=1, plan=plan)
    steps = [replace(UNIT, end_us=step_us, step=step, plan=plan) for step in range(1, 5)]
    return Timeline((*[segment] * 4, *steps), (), 0, 0)


def measured(plan: PlanRequest) -> DrivenScheduler:
    """Return a mesh with one request that decodes, which has just heard what units take."""
    scheduler = DrivenScheduler(plan=plan, rtt_us=5000).connect().decoding("a", max_tokens=40)
    scheduler.step_done(1, sample(1, 1), turnaround_us=1000)
    scheduler.now_us = 1_000_000
    return scheduler.said(Side.CLOUD, ran(layer_us=100, step_us=2000, plan=scheduler.core.plan.plan))


def test_an_adaptive_plan_follows_what_was_measured_and_says_what_it_predicts() -> None:
    """Both engines get it; whoever watches gets its values and the rows a second that are predicted."""
    scheduler = measured(ADAPTIVE)
    (plan,) = scheduler.tasks(Side.CLOUD, Plan)
    assert scheduler.tasks(Side.EDGE, Plan) == [plan] == [scheduler.core.plan]
    assert plan.fill_to_rows > 0
    assert plan.fill_row_us == 3 * 200  # a prompt of three tokens, six layers of 100 us
    (told,) = [effect for effect in scheduler.effects if isinstance(effect, Replanned)]
    assert told.change.plan == plan
    assert told.change.rows_per_s > 0
    assert told.change.gain == told.change.rows_per_s / told.change.rows_per_s_before - 1


def test_a_plan_follows_at_most_once_a_second() -> None:
    """Whatever engines report meanwhile."""
    scheduler = measured(ADAPTIVE)
    slower = ran(layer_us=300, step_us=6000, plan=scheduler.core.plan.plan)
    scheduler.now_us = 1_999_999
    for _ in range(3):
        assert scheduler.said(Side.CLOUD, slower).tasks(Side.CLOUD, Plan) == []
    scheduler.now_us = 2_000_000
    assert len(scheduler.said(Side.CLOUD, slower).tasks(Side.CLOUD, Plan)) == 1


def test_a_plan_that_an_operator_asks_for_forgets_the_values_and_not_the_measures() -> None:
    """Back under the adaptive plan its values follow at the next report, without a warm-up."""
    scheduler = measured(ADAPTIVE)
    scheduler.tell(PlanRequest(PlanKind.SERIAL))
    (serial,) = scheduler.tasks(Side.CLOUD, Plan)
    assert serial.fill_to_rows == 0
    scheduler.tell(ADAPTIVE)
    scheduler.said(Side.CLOUD, Timeline((), (), 0, 0))
    (plan,) = scheduler.tasks(Side.CLOUD, Plan)
    assert plan.fill_row_us == 3 * 200


def test_the_cut_of_a_fixed_plan_follows_what_was_measured() -> None:
    """L20: six layers take 600 us and a step returns after 6 ms, so the next chunk is not cut; before, it was."""
    plan = PlanRequest(PlanKind.ONE_P_ONE_D)
    (before,) = DrivenScheduler(plan=plan).connect().ask("a").tasks(Side.CLOUD, Chunk)
    assert len(before.segments) == 4
    (after,) = measured(plan).ask("b").tasks(Side.CLOUD, Chunk)
    assert len(after.segments) == 1
    (wanted,) = measured(PlanRequest(PlanKind.ONE_P_ONE_D, num_segments=3)).ask("b").tasks(Side.CLOUD, Chunk)
    assert len(wanted.segments) == 3
