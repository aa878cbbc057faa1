"""The plan in force: what an operator asked for, and what was measured since.

Knows the kinds of plans and when a value has moved enough to be sent. Does not know requests: what waits is given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from edgeweave.interleave.adaptive import Goal, Queue, Values, adapt
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Plan, PlanKind, Segment
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

    def __post_init__(self) -> None:
        """Make the first plan, so that a wrong one is refused at once."""
        self.plan = self._made(self.wanted, None, number=1)

    def begin(self, session: Session) -> Plan:
        """Return the plan for a new session, in which nothing was measured yet."""
        self.values, self._followed_us = None, None
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

    def follow(self, session: Session, queue: Callable[[], Queue], *, now_us: int) -> Plan | None:
        """Return the plan that follows what was measured; `None` while it is not due, or has hardly moved."""
        if self._followed_us is not None and now_us < self._followed_us + INTERVAL_US:
            return None
        plan = self._followed(session, queue)
        if not _differs(plan, self.plan):
            return None
        self._followed_us, self.plan = now_us, plan
        return plan

    def cut(self, body: Segment) -> tuple[Segment, ...]:
        """Return the cut of the next chunk: equal segments, or under an adaptive plan the longest allowed."""
        if body.num_layers == 0:
            return ()
        if self.plan.kind is not PlanKind.ADAPTIVE:
            return cut_evenly(body, num_segments=self.wanted.num_segments or DEFAULT_NUM_SEGMENTS)
        longest = self.values.longest_layers if self.values is not None else None
        return cut_evenly(body, num_segments=-(-body.num_layers // longest) if longest else 1)

    def _made(self, wanted: PlanRequest, session: Session | None, *, number: int) -> Plan:
        max_batch_size = self.limits.max_batch_size
        plan = make_plan(wanted, number=number, max_batch_size=max_batch_size, max_grace_us=self.max_grace_us)
        decode_return_us = session.measures.decode_return_us if session is not None else 0
        return with_decode_return(plan, number=number, decode_return_us=decode_return_us)

    def _followed(self, session: Session, queue: Callable[[], Queue]) -> Plan:
        number, decode_return_us = self.plan.plan + 1, session.measures.decode_return_us
        if self.plan.kind is not PlanKind.ADAPTIVE or not session.measures.are_complete:
            return with_decode_return(self.plan, number=number, decode_return_us=decode_return_us)
        self.values = adapt(session.measures, queue(), self.goal)
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
    counts = (plan.max_prefills, plan.max_steps) != (before.max_prefills, before.max_steps)
    times = [(plan.decode_return_us, before.decode_return_us), (plan.min_segment_us, before.min_segment_us)]
    return counts or any(abs(new_us - old_us) * 5 > old_us for new_us, old_us in times)
