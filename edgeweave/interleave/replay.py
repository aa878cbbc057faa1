"""Replays what an engine ran through the decision functions, and counts departures.

Knows the plans that were sent and the order of units. The count is 0 unless an engine decides by other rules than the
scheduler believes.
"""

from dataclasses import dataclass, field

from edgeweave.errors import ProtocolError
from edgeweave.interleave.choices import CloudView, EdgeView, EdgeWork, Work, next_edge_unit, next_unit
from edgeweave.interleave.nouns import Plan, Stage, UnitRan

_EDGE_WORK = {
    Stage.HEAD: EdgeWork.HEAD,
    Stage.TAIL: EdgeWork.TAIL,
    Stage.TURNAROUND: EdgeWork.TURNAROUND,
    Stage.FUSED_HEAD: EdgeWork.FUSED,
}
_CLOUD_WORK = {
    Stage.SEGMENT: Work.PREFILL,
    Stage.STEP: Work.DECODE,
    Stage.BOARDING: Work.DECODE,
    Stage.FUSED_SEGMENT: Work.FUSED,
}
NUM_PLANS = 256


@dataclass(slots=True)
class Replay:
    """The units of one session, replayed as they are reported."""

    holds_body: bool = False
    plans: dict[int, Plan] = field(default_factory=dict)
    num_departures: int = 0
    _last: Work | None = None
    _before_last: Work | None = None
    _last_edge: EdgeWork | None = None

    def remember(self, plan: Plan) -> None:
        """Know a plan that was sent; the oldest are forgotten."""
        self.plans[plan.plan] = plan
        while len(self.plans) > NUM_PLANS:
            del self.plans[min(self.plans)]

    def observe(self, ran: UnitRan) -> None:
        """Take one unit of either engine, in the order in which that engine ran it.

        A unit whose plan is forgotten cannot be replayed and is not counted.

        Raises:
            ProtocolError: the engine names a plan that was never sent.
        """
        plan = self.plans.get(ran.plan)
        if plan is None and ran.plan > max(self.plans, default=0):
            raise ProtocolError(
                f"a unit ran under plan {ran.plan}, and the newest that was sent is {max(self.plans, default=0)}"
            )
        if ran.stage in _CLOUD_WORK:
            self._observe_cloud(ran, plan)
        else:
            self._observe_edge(ran, plan)

    def _observe_cloud(self, ran: UnitRan, plan: Plan | None) -> None:
        work = _CLOUD_WORK[ran.stage]
        view = CloudView(
            now_us=ran.begin_us,
            prefill_ready=ran.prefill_ready,
            decode_ready=ran.decode_ready,
            last=self._last,
            before_last=self._before_last,
            decode_due_us=ran.decode_due_us,
            prefill_run_us=ran.prefill_run_us,
            decode_rows=ran.decode_rows,
            ride_layers=ran.ride_layers,
            step_layers=ran.step_layers,
        )
        self.num_departures += plan is not None and next_unit(view, plan) is not work
        self._before_last, self._last = self._last, work

    def _observe_edge(self, ran: UnitRan, plan: Plan | None) -> None:
        work = _EDGE_WORK[ran.stage]
        view = EdgeView(
            turnaround_ready=ran.decode_ready,
            tail_ready=ran.tail_ready,
            head_ready=ran.prefill_ready,
            holds_body=self.holds_body,
            last=self._last_edge,
            prefill_run_us=ran.prefill_run_us,
            decode_rows=ran.decode_rows,
        )
        self.num_departures += plan is not None and next_edge_unit(view, plan) is not work
        self._last_edge = work
