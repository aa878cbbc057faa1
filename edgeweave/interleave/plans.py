"""Named plans: what `serial`, `1p1d`, `2p1d` and `adaptive` stand for, and how a body is cut into segments.

Knows the meaning of each name (rows L07, L08, L12, L19). Does not measure; times come in as values.
"""

from dataclasses import dataclass, replace

from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.adaptive import Values
from edgeweave.interleave.nouns import Fuse, Plan, PlanKind, Segment

PLAN_NAMES: dict[str, PlanKind] = {
    "serial": PlanKind.SERIAL,
    "1p1d": PlanKind.ONE_P_ONE_D,
    "2p1d": PlanKind.TWO_P_ONE_D,
    "adaptive": PlanKind.ADAPTIVE,
}
TWO_PREFILLS = (PlanKind.TWO_P_ONE_D, PlanKind.ADAPTIVE)
DEFAULT_NUM_SEGMENTS = 4
# No plan keeps more chunks or steps in flight: the cloud bounds by it the steps that it holds.
MAX_IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What an operator asks for; `None` keeps what the kind implies."""

    kind: PlanKind
    max_prefills: int | None = None
    max_steps: int | None = None
    num_segments: int | None = None
    fuse: Fuse = Fuse.AUTO


def kind_named(name: str) -> PlanKind:
    """Return the kind that `name` stands for.

    Raises:
        InvalidRequestError: no plan has this name.
    """
    if name not in PLAN_NAMES:
        raise InvalidRequestError(f"plan {name!r} is not known; choose one of {', '.join(PLAN_NAMES)}")
    return PLAN_NAMES[name]


def make_plan(request: PlanRequest, *, number: int, max_batch_size: int, max_grace_us: int) -> Plan:
    """Return plan `number` for what was asked.

    Raises:
        InvalidRequestError: the values contradict the kind.
    """
    max_prefills = request.max_prefills or (2 if request.kind in TWO_PREFILLS else 1)
    max_steps = request.max_steps or 1
    if request.kind is PlanKind.SERIAL and (max_prefills, max_steps) != (1, 1):
        raise InvalidRequestError("plan serial keeps one unit away: max_prefills and max_steps must be 1")
    if request.kind is PlanKind.SERIAL and request.fuse is Fuse.ALWAYS:
        raise InvalidRequestError(
            "plan serial keeps one unit away: no rows can ride in prefill, so fuse cannot be always"
        )
    if max(max_prefills, max_steps) > MAX_IN_FLIGHT or min(max_prefills, max_steps) < 1:
        raise InvalidRequestError(
            f"max_prefills {max_prefills} and max_steps {max_steps} must be between 1 and {MAX_IN_FLIGHT}"
        )
    return Plan(
        plan=number,
        kind=request.kind,
        max_prefills=max_prefills,
        max_steps=max_steps,
        max_batch_size=max_batch_size,
        next_head_first=max_prefills > 1,
        max_grace_us=max_grace_us,
        may_fuse=request.fuse is Fuse.ALWAYS,
    )


def with_decode_return(plan: Plan, *, number: int, decode_return_us: int) -> Plan:
    """Return `plan` under a new number with another expected decode return."""
    return replace(plan, plan=number, decode_return_us=decode_return_us)


def with_values(plan: Plan, values: Values, *, number: int, decode_return_us: int) -> Plan:
    """Return an adaptive `plan` under a new number with other values.

    It has no grace: once the shortest segment has run, prefill may yield after every layer, or after a short piece
    of thin ones, so a step that comes waits for no more than that, and the cloud need not idle for it.
    """
    plan = with_counts(plan, max_prefills=values.max_prefills, max_steps=values.max_steps)
    return replace(
        plan,
        plan=number,
        min_segment_us=values.min_segment_us,
        fill_to_rows=values.fill_to_rows,
        fill_row_us=values.fill_row_us,
        decode_return_us=decode_return_us,
        max_grace_us=0,
        may_fuse=values.may_fuse,
        fuse_after_layers=values.fuse_after_layers,
    )


def with_counts(plan: Plan, *, max_prefills: int, max_steps: int) -> Plan:
    """Return `plan` with other counts in flight; with more than one chunk the next head goes first (L12)."""
    return replace(plan, max_prefills=max_prefills, max_steps=max_steps, next_head_first=max_prefills > 1)


def cut_evenly(body: Segment, *, num_segments: int) -> tuple[Segment, ...]:
    """Cut `body` into at most `num_segments` segments of equal length, the longer ones first (L19).

    Lengths differ by one layer at most; together the segments cover each layer once.
    """
    num_segments = min(num_segments, body.num_layers)
    short, num_long = divmod(body.num_layers, num_segments)
    segments = []
    start = body.start
    for index in range(num_segments):
        stop = start + short + (index < num_long)
        segments.append(Segment(start, stop))
        start = stop
    return tuple(segments)


FIRST_PLAN = Plan(plan=0, kind=PlanKind.SERIAL, max_prefills=1, max_steps=1, max_batch_size=1)
"""What an engine follows before its scheduler has sent a plan."""
