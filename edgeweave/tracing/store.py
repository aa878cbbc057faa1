"""The spans of the last minutes, in memory: what a timeline page and an export read.

Knows how many are kept: the newest. Does not know what they mean.
"""

from collections import deque
from collections.abc import Iterator

from edgeweave.tracing.span import Span


class SpanStore:
    """Keeps the newest `max_spans` spans, in the order in which they ended their way here."""

    def __init__(self, max_spans: int) -> None:
        self._spans: deque[Span] = deque(maxlen=max_spans)

    def add(self, span: Span) -> None:
        """Keep a span, and forget the oldest where there are too many."""
        self._spans.append(span)

    def since(self, begin_us: int) -> Iterator[Span]:
        """Yield what had not ended at `begin_us` by the wall clock."""
        yield from [span for span in self._spans if span.end_us >= begin_us]
