"""The spans of the last minutes, in memory: what the timeline page and an export read.

Knows how many are kept: the newest. Those of the engines' timelines are kept apart, because they say what each second
was spent on, and a busy mesh makes many times as many for its requests. Does not know what they mean.
"""

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice

from edgeweave.tracing.span import Span


class SpanStore:
    """Keeps the newest `max_spans` spans of timelines, and as many of requests, in the order in which they came.

    The spans of requests themselves, one for each, are with the timelines: they name what those link to.
    """

    def __init__(self, max_spans: int) -> None:
        self._of_timelines: deque[Span] = deque(maxlen=max_spans)
        self._of_requests: deque[Span] = deque(maxlen=max_spans)
        self._num_of_timelines = 0

    def add(self, span: Span) -> None:
        """Keep a span of what was done for a request, and forget the oldest where there are too many."""
        self._of_requests.append(span)

    def add_to_timelines(self, span: Span) -> None:
        """Keep a span of an engine's timeline, or of a request itself."""
        self._of_timelines.append(span)
        self._num_of_timelines += 1

    @property
    def num_of_timelines(self) -> int:
        """How many spans of timelines have come so far: `timelines(after=...)` of it yields what comes from now on."""
        return self._num_of_timelines

    def since(self, begin_us: int) -> Iterator[Span]:
        """Yield what had not ended at `begin_us` by the wall clock."""
        yield from [span for span in chain(self._of_timelines, self._of_requests) if span.end_us >= begin_us]

    def timelines(self, *, after: int, begin_us: int) -> Iterator[Span]:
        """Yield what timelines got after their first `after` spans, if it had not ended at `begin_us`.

        What was forgotten since is left out. An `after` beyond all that came is of a scheduler before this one, and
        yields all.
        """
        num_known = after if after <= self._num_of_timelines else 0
        num_forgotten = self._num_of_timelines - len(self._of_timelines)
        unseen = islice(self._of_timelines, max(0, num_known - num_forgotten), None)
        yield from [span for span in unseen if span.end_us >= begin_us]

    def of_trace(self, trace: int) -> Iterator[Span]:
        """Yield the spans of one trace."""
        yield from [span for span in chain(self._of_timelines, self._of_requests) if span.context.trace == trace]
