"""The plan in force: what an operator asked for, and what was measured since.

Knows the kinds of plans and when a value has moved enough to be sent. Does not know requests: what waits is given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from edgeweave.interleave.adaptive import Goal, Values, adapt, balanced_segments
from edgeweave.interleave.forecast import Forecast, Queue
from edgeweave.interleave.fusing import best_ride, ride_rows_per_s
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Plan, PlanKind, Segment
from edgeweave.interleave.plan_change import PlanChange
from edgeweave.interleave.plans import (
    DEFAULT_NUM_SEGMENTS,
    PlanRequest,
    cut_evenly,
    make_plan,
    with_counts,
    with_decode_return,
    with_values,
)
from edgeweave.interleave.refusal import check_staging
from edgeweave.interleave.session import Session

INTERVAL_US = 1_000_000
"""A plan follows what was measured at most this often."""


@dataclass(slots=True)
class Planner:
    """Makes plans. `values` are those of the adaptive plan, once enough was measured."""

    limits: Limits
    wanted: PlanRequest
    max_grace_us: int
    goal: Goal = field(default_factory=Goal)
    plan: Plan = field(init=False)
    values: Values | None = None
    _followed_us: int | None = None
    _num_segments: int = DEFAULT_NUM_SEGMENTS

    def __post_init__(self) -> None:
        """Make the first plan, so that a wrong one is refused at once."""
        self.plan = self._made(self.wanted, None, number=1)

    def begin(self, session: Session) -> Plan:
        """Return the plan for a new session, in which nothing was measured yet."""
        self.values, self._followed_us, self._num_segments = None, None, DEFAULT_NUM_SEGMENTS
        self.plan = self._made(self.wanted, session, number=self.plan.plan + 1)
        return self.plan

    def ask(self, wanted: PlanRequest, session: Session | None) -> Plan:
        """Return the plan that an operator asks for.

        Raises:
            InvalidRequestError: it contradicts itself, or the engines cannot stage what it keeps in flight; the plan
                in force stays.
        """
        plan = self._made(wanted, session, number=self.plan.plan + 1)
        if session is not None:
            check_staging(plan, session, limits=self.limits)
        self.wanted, self.plan, self.values = wanted, plan, None
        return plan

    def follow(self, session: Session, queue: Callable[[], Queue], *, now_us: int) -> PlanChange | None:
        """Return the plan that follows what was measured; `None` while it is not due, or has hardly moved."""
        if not self._is_due(session, now_us):
            return None
        forecast = Forecast(session.measures, queue())
        before, plan = self.plan, self._followed(session, forecast)
        is_changed = _differs(plan, before)
        if is_changed or session.measures.are_known:
            self._followed_us = now_us  # what is hardly known may move at the next report
        if not is_changed:
            return None
        self.plan = plan
        return PlanChange(plan, _rows_per_s(forecast, plan), _rows_per_s(forecast, before))

    def cut(self, body: Segment) -> tuple[Segment, ...]:
        """Return the cut of the next chunk: equal segments, or under an adaptive plan the longest allowed."""
        if body.num_layers == 0:
            return ()
        if self.plan.kind is not PlanKind.ADAPTIVE:
            return cut_evenly(body, num_segments=self.wanted.num_segments or self._num_segments)
        longest = self.values.longest_layers if self.values is not None else None
        return cut_evenly(body, num_segments=-(-body.num_layers // longest) if longest else 1)

    def ride_tokens(self, *, num_decoding: int) -> int | None:
        """Return how many tokens a chunk holds so that rows ride in it; `None`: as many as it may.

        While less than half a step's rows decode, prompts go through as fast as they can.
        """
        if self.values is None or not self.plan.may_fuse or 2 * num_decoding < self.limits.max_batch_size:
            return None
        return self.values.ride_tokens

    def _is_due(self, session: Session, now_us: int) -> bool:
        """Whether the interval is over, or enough was measured for the first time."""
        is_first = self.plan.kind is PlanKind.ADAPTIVE and self.values is None and session.measures.are_known
        return is_first or self._followed_us is None or now_us >= self._followed_us + INTERVAL_US

    def _made(self, wanted: PlanRequest, session: Session | None, *, number: int) -> Plan:
        max_batch_size = self.limits.max_batch_size
        plan = make_plan(wanted, number=number, max_batch_size=max_batch_size, max_grace_us=self.max_grace_us)
        decode_return_us = session.measures.decode_return_us if session is not None else 0
        return with_decode_return(plan, number=number, decode_return_us=decode_return_us)

    def _followed(self, session: Session, forecast: Forecast) -> Plan:
        number, decode_return_us = self.plan.plan + 1, session.measures.decode_return_us
        self._num_segments = balanced_segments(forecast) or self._num_segments
        if self.plan.kind is not PlanKind.ADAPTIVE or not session.measures.are_known:
            return with_decode_return(self.plan, number=number, decode_return_us=decode_return_us)
        self.values = adapt(forecast, self.goal, fuse=self.wanted.fuse)
        plan = with_values(self.plan, self.values, number=number, decode_return_us=decode_return_us)
        return self._as_wanted(plan, session)

    def _as_wanted(self, plan: Plan, session: Session) -> Plan:
        """Keep the counts that were asked for, and no more chunks in flight than the engines stage."""
        staged = session.staged_tokens
        most = max(1, staged // self.limits.prefill_budget - 1) if staged is not None else plan.max_prefills
        return with_counts(
            plan,
            max_prefills=self.wanted.max_prefills or min(plan.max_prefills, most),
            max_steps=self.wanted.max_steps or plan.max_steps,
        )


def _differs(plan: Plan, before: Plan) -> bool:
    """Whether a plan differs enough to be sent: a count at all, a time by a fifth."""
    times = zip(_times_us(plan), _times_us(before), strict=True)
    return _counts(plan) != _counts(before) or any(abs(new_us - old_us) * 5 > old_us for new_us, old_us in times)


def _counts(plan: Plan) -> tuple[int, ...]:
    return (plan.max_prefills, plan.max_steps, plan.fill_to_rows, plan.may_fuse, plan.fuse_after_layers)


def _times_us(plan: Plan) -> tuple[int, ...]:
    return (plan.decode_return_us, plan.min_segment_us, plan.fill_row_us)


def _rows_per_s(forecast: Forecast, plan: Plan) -> float:
    if not forecast.measures.has_steps:
        return 0.0
    if plan.may_fuse and (ride := best_ride(forecast, max_steps=plan.max_steps)) is not None:
        return ride_rows_per_s(forecast, ride, max_steps=plan.max_steps)
    return forecast.rows_per_s(max_steps=plan.max_steps, max_prefills=plan.max_prefills)
