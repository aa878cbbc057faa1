"""The decision functions: what an engine runs next, and whether the scheduler may issue.

Each is pure: from a view and the plan it makes a choice. The engines decide with them and the scheduler replays them.
They know nothing of queues or time sources.
"""

from dataclasses import dataclass
from enum import Enum

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import Plan, PlanKind


class Work(Enum):
    """The kinds of work in the cloud: a prefill segment, the body of a decode step, or both in one."""

    PREFILL = "prefill"
    DECODE = "decode"
    FUSED = "fused"


class EdgeWork(Enum):
    """The classes of work on the edge; the last is a turnaround and a head in one, where the edge holds all layers."""

    TURNAROUND = "turnaround"
    TAIL = "tail"
    HEAD = "head"
    FUSED = "fused"


class Issue(Enum):
    """What the stage table says: issue a prefill chunk, or leave the mesh to decode."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class Wait:
    """Run nothing until `until_us`, unless something arrives before."""

    until_us: int


@dataclass(frozen=True, slots=True)
class CloudView:
    """What the cloud engine sees when it is free.

    `last` and `before_last` are the two units that ran most recently. `decode_due_us` is when the next decode step
    is expected, `None` when none is on its way. `prefill_run_us` is how long prefill has run since it last yielded.
    `decode_rows` counts the sequences that are through their prefill: those of the step that is ready, and those that
    will join one. `ride_layers` and `step_layers` are layers that are over: of the chunk that rows would
    ride in, and of the step.
    """

    now_us: int
    prefill_ready: bool
    decode_ready: bool
    last: Work | None = None
    before_last: Work | None = None
    decode_due_us: int | None = None
    prefill_run_us: int = 0
    decode_rows: int = 0
    ride_layers: int = 0
    step_layers: int = 0


@dataclass(frozen=True, slots=True)
class EdgeView:
    """What the edge engine sees when it is free. The last three matter only where the edge holds all layers."""

    turnaround_ready: bool
    tail_ready: bool
    head_ready: bool
    holds_body: bool = False
    last: EdgeWork | None = None
    prefill_run_us: int = 0
    decode_rows: int = 0


def next_unit(view: CloudView, plan: Plan) -> Work | Wait | None:
    """Return what the cloud runs next (L16, L17, L18).

    Both ready: both in one, where the plan lets rows ride. Else the kind that did not run last, prefill on a cold
    start; but prefill yields only once it had its turn, the shortest segment of the plan or longer while the batch is
    to be filled. Fixed plans set neither, so that they yield at each cut. Only decode ready: decode; what is still on
    its way holds nothing back. Only prefill ready: the next segment, but after a pair decode, segment first give decode
    its chance: wait until it is due, if that is within the grace of the plan.
    """
    if view.prefill_ready and view.decode_ready:
        return _of_both(view, plan)
    if view.decode_ready:
        return Work.DECODE
    if view.prefill_ready:
        return _grace(view, plan) or Work.PREFILL
    return None


def rides(view: CloudView, plan: Plan) -> bool:
    """Return whether the step that is ready rides in the chunk that is: alone up to where that is, then with it."""
    both_ready = view.prefill_ready and view.decode_ready
    takes_rows = not view.ride_layers or view.ride_layers >= plan.fuse_after_layers
    return plan.may_fuse and both_ready and takes_rows and view.step_layers <= view.ride_layers


def _of_both(view: CloudView, plan: Plan) -> Work:
    if rides(view, plan):
        return Work.FUSED if view.step_layers == view.ride_layers else Work.DECODE
    had_turn = view.last is not Work.DECODE and view.last is not None
    may_yield = had_turn and view.prefill_run_us >= prefill_turn_us(view.decode_rows, plan)
    return Work.DECODE if may_yield or view.step_layers else Work.PREFILL


def prefill_turn_us(decode_rows: int, plan: Plan) -> int:
    """Return how long prefill may run before it yields to a step that is ready: longer where that fills the batch."""
    return max(plan.min_segment_us, (plan.fill_to_rows - decode_rows) * plan.fill_row_us)


def _grace(view: CloudView, plan: Plan) -> Wait | None:
    after_pair = view.last is Work.PREFILL and view.before_last is Work.DECODE
    if not after_pair or view.decode_due_us is None:
        return None
    if view.now_us < view.decode_due_us <= view.now_us + plan.max_grace_us:
        return Wait(view.decode_due_us)
    return None


def next_edge_unit(view: EdgeView, plan: Plan) -> EdgeWork | None:
    """Return what the edge runs next: the first class that is ready (L12).

    A turnaround goes first, since a whole decode group waits for it. Then, with more than one chunk in flight, the
    head of the next chunk before the tail of the one before, so that the cloud has it in time; else the tail first.
    An edge that holds all layers shares its time between decode and prefill instead, as the cloud does; or a
    turnaround takes the next head with it, once the tails are through, whose rows join its step.
    """
    if view.holds_body and plan.may_fuse and view.turnaround_ready and (view.tail_ready or view.head_ready):
        return EdgeWork.TAIL if view.tail_ready else EdgeWork.FUSED
    if view.holds_body and (view.tail_ready or view.head_ready) and not _may_turn(view, plan):
        return EdgeWork.TAIL if view.tail_ready else EdgeWork.HEAD
    if view.turnaround_ready:
        return EdgeWork.TURNAROUND
    if plan.next_head_first and view.head_ready:
        return EdgeWork.HEAD
    if view.tail_ready:
        return EdgeWork.TAIL
    return EdgeWork.HEAD if view.head_ready else None


def _may_turn(view: EdgeView, plan: Plan) -> bool:
    """Whether prefill of an edge that holds all layers has had its turn."""
    had_turn = view.prefill_run_us >= prefill_turn_us(view.decode_rows, plan)
    return view.last is not EdgeWork.TURNAROUND and had_turn


@dataclass(frozen=True, slots=True)
class StageView:
    """What the scheduler sees before it may issue a chunk.

    `num_prefills` counts chunks issued and not answered (p); `decoding` is whether a sequence decodes (d).
    `low_blocks` is set when fewer than 5 % of the blocks of a side are free; `last_empty` when the last attempt
    formed nothing.
    """

    num_prefills: int
    decoding: bool
    waiting: bool
    running: bool
    low_blocks: bool = False
    last_empty: bool = False


def choose_stage(view: StageView, plan: Plan) -> Issue:
    """Return what the stage table chooses (L07 to L11).

    `PREFILL` lets the scheduler form a chunk. `DECODE` leaves the mesh to the standing order of decode, which the
    edge carries out without being asked.

    Raises:
        ProtocolError: more chunks are in flight than the plan allows although none may be issued beyond it; both
            counters are named.
    """
    if view.num_prefills >= plan.max_prefills and view.decoding:
        raise ProtocolError(
            f"a stage was asked for with {view.num_prefills} of {plan.max_prefills} chunks in flight beside decode; "
            "the round limit must stop this"
        )
    if not view.decoding and view.running and (view.low_blocks or view.last_empty):
        return Issue.DECODE
    if view.num_prefills >= plan.max_prefills:
        return Issue.DECODE
    if not view.decoding and not view.waiting and view.running:
        return Issue.DECODE
    return Issue.PREFILL


@dataclass(frozen=True, slots=True)
class MeshView:
    """What the edge sees before it starts a chunk or launches a step under a plan.

    `chunk_away` and `num_steps_away` count work between its head and its tail; `chunk_waits` and `rows_wait` say
    whether the other kind could start as well; `last_was_step` names the kind that was away last.
    """

    chunk_away: bool
    num_steps_away: int
    chunk_waits: bool
    rows_wait: bool
    last_was_step: bool


def may_start_head(view: MeshView, plan: Plan) -> bool:
    """Return whether the head of a chunk that waits may begin.

    Only `serial` ever says no: one unit of the mesh is away at a time, and the kinds take turns when both wait.
    """
    if plan.kind is not PlanKind.SERIAL:
        return True
    if view.chunk_away or view.num_steps_away:
        return False
    return view.last_was_step or not view.rows_wait


def may_launch_step(view: MeshView, plan: Plan) -> bool:
    """Return whether another step may leave for the cloud."""
    if plan.kind is not PlanKind.SERIAL:
        return view.num_steps_away < plan.max_steps
    if view.chunk_away or view.num_steps_away:
        return False
    return not view.last_was_step or not view.chunk_waits
