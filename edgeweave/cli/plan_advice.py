"""What the figures of `edgeweave plan` mean, in plain sentences.

Knows which words fit which figures. Does not lay them out.
"""

from edgeweave.sim.ceiling import Limit
from edgeweave.sim.recommend import Recommendation

UNMEASURABLE = 0.005
"""A smaller loss is called none."""


def advice(found: Recommendation) -> list[str]:
    """Return what the figures mean: what is lost and where, what would help, and how to run it."""
    return [_verdict(found), *_remedies(found), _how_to_run(found)]


def _verdict(found: Recommendation) -> str:
    where = f"At {found.case.distance_km:,.0f} km {found.chosen.name}"
    if found.loss < UNMEASURABLE:
        return f"{where} loses nothing against one place."
    if found.loss <= found.max_loss:
        return f"{where} loses {found.loss:.1%}, within the {in_percent(found.max_loss)} that is accepted."
    accepted = in_percent(found.max_loss)
    return f"{where} loses {found.loss:.1%}, more than the {accepted} that is accepted: {_cause(found)}."


def _cause(found: Recommendation) -> str:
    """Return where the loss is: where every order of work has it, or else in the order of work."""
    if found.least_loss <= found.max_loss:
        idle = sum(found.chosen.outcome.bubbles_us.values()) / found.chosen.outcome.wall_us
        return (
            f"the load has enough work to keep within it, but the order of work does not get there; "
            f"the cloud waits {idle:.0%} of the time, and the rest goes into thinner batches and shorter segments"
        )
    least = f"no plan loses less than {found.least_loss:.0%}"
    match found.ceiling.limit:
        case Limit.LINK:
            return f"the link is full, and {least}"
        case Limit.EDGE:
            return f"the site's engine never rests, and {least}"
        case Limit.DECODE_RETURN | Limit.CLOUD:
            return f"{_lack(found)}, and {least}"


def _lack(found: Recommendation) -> str:
    lack = (
        f"the load has {in_ms(found.prefill_had_us or 0.0)} of prefill for each decode step, and hiding the distance "
        f"takes {in_ms(found.prefill_needed_us)}"
    )
    num_groups = found.ceiling.num_groups
    if num_groups == 1:
        return f"{lack}; the cloud waits for decode steps"
    return f"{lack}; {num_groups} decode groups hide more, but each pays the fixed time of a step"


def _remedies(found: Recommendation) -> list[str]:
    if found.loss <= found.max_loss:
        return []
    nearer = (
        f"A cloud within {found.reach_km:,} km would keep it."
        if found.reach_km is not None
        else "Not even a cloud at the site's door would keep it under this plan."
    )
    return [nearer, *_other_remedies(found)]


def _other_remedies(found: Recommendation) -> list[str]:
    if found.least_loss <= found.max_loss:
        return []
    helps = {
        Limit.LINK: "a faster link",
        Limit.EDGE: "more devices at the site, or fewer layers there",
        Limit.DECODE_RETURN: "more prefill beside the same decode, or more sequences in a step",
        Limit.CLOUD: "more prefill beside the same decode, or more sequences in a step",
    }
    return [f"What helps at this distance: {helps[found.ceiling.limit]}."]


def _how_to_run(found: Recommendation) -> str:
    flags = [f"--plan {found.chosen.name}"]
    if found.chosen.plan.num_segments is not None:
        flags.append(f"--num-segments {found.num_segments}")
    if found.chosen.max_steps > 1:
        flags.append(f"--max-steps {found.chosen.max_steps}")
    return f"Run it with: {' '.join(flags)}"


def in_ms(time_us: float) -> str:
    """Return a time as people read it."""
    return f"{time_us / 1000:.1f} ms"


def in_percent(share: float) -> str:
    """Return a share as people write it, without a digit too many."""
    return f"{share * 100:g}%"
