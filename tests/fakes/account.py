"""Checks that an engine's reports leave no microsecond out and count none twice.

At each report busy + bubbles + idle is the time since the session began, less the unit or bubble that is open then; and
what was open is told later, from where the count stopped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from edgeweave.interleave.nouns import BubbleCause, Timeline

Span = tuple[int, int]


def check_account(timelines: Sequence[Timeline], *, begin_us: int) -> None:
    """Check all reports of one engine in one session that began at `begin_us` of its clock."""
    told_us, resumes_us = begin_us, None
    """Up to where spans were told, and where the next one has to begin if something was open."""
    counted_us = 0
    for timeline in timelines:
        spans = spans_of(timeline)
        if spans and resumes_us is not None:
            assert spans[0][0] == resumes_us, f"what was open at {resumes_us} was told from {spans[0][0]}"
        for start_us, stop_us in spans:
            assert told_us <= start_us <= stop_us, f"[{start_us}, {stop_us}) is counted twice, up to {told_us}"
            told_us = stop_us
        counted_us += timeline.idle_us + sum(stop_us - start_us for start_us, stop_us in spans)
        counted_to_us = begin_us + counted_us
        assert told_us <= counted_to_us <= timeline.clock_us, f"{counted_us} us are counted at {timeline.clock_us}"
        resumes_us = counted_to_us if counted_to_us < timeline.clock_us else None


def check_closed(timelines: Sequence[Timeline], *, begin_us: int) -> None:
    """Check that nothing is open at the last report: all the time of the session is accounted for."""
    counted_us = sum(
        timeline.idle_us + sum(stop - start for start, stop in spans_of(timeline)) for timeline in timelines
    )
    assert counted_us == timelines[-1].clock_us - begin_us, f"{counted_us} us of {timelines[-1].clock_us - begin_us}"


def spans_of(timeline: Timeline) -> list[Span]:
    """Return units and bubbles of a report in the order of time."""
    return sorted(
        [(ran.begin_us, ran.end_us) for ran in timeline.ran]
        + [(bubble.begin_us, bubble.end_us) for bubble in timeline.bubbles]
    )


def bubbles_by_cause(timelines: Iterable[Timeline]) -> dict[BubbleCause, int]:
    """Return the time of all bubbles by cause."""
    sums: Counter[BubbleCause] = Counter()
    for bubble in (bubble for timeline in timelines for bubble in timeline.bubbles):
        sums[bubble.cause] += bubble.end_us - bubble.begin_us
    return dict(sums)
