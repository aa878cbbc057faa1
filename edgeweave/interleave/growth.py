"""Who gets more KV, and who gives way: limits are raised one block ahead, the newest are preempted for the oldest.

A pure decision over a session's accounts and sequences (L32, L33). The oldest sequence never gives way, so it reaches
its end.
"""

from dataclasses import dataclass

from edgeweave.interleave.requests import SchedulerSequence
from edgeweave.interleave.session import Session


@dataclass(frozen=True, slots=True)
class Extension:
    """Raise the reservation of `sequence` to `num_tokens` on every side."""

    sequence: SchedulerSequence
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """Release `sequence` and let its request wait again, in front."""

    sequence: SchedulerSequence


def next_growth(session: Session) -> Extension | Preemption | None:
    """Return what to do for the oldest sequence that wants to grow; `None`: nothing, or wait for blocks."""
    oldest = session.first_to_grow()
    return _growth_of(session, oldest) if oldest is not None else None


def _growth_of(session: Session, sequence: SchedulerSequence) -> Extension | Preemption | None:
    wanted = min(sequence.token_limit + session.accounts.largest_block, sequence.max_kv_tokens)
    if not session.accounts.missing_blocks(sequence.number, num_tokens=wanted):
        return Extension(sequence, wanted)
    _oldest, *others = session.live
    if _is_covered(session, sequence, wanted) or not others:
        return None
    return Preemption(others[-1])


def _is_covered(session: Session, sequence: SchedulerSequence, num_tokens: int) -> bool:
    """Whether blocks that are being released will do; nothing more has to be preempted then."""
    leaving = [other for other in session.sequences.values() if not other.is_live]
    short = session.accounts.missing_blocks(sequence.number, num_tokens=num_tokens)
    return all(
        count <= sum(session.accounts.sides[side].reserved.get(other.number, 0) for other in leaving)
        for side, count in short.items()
    )
