"""Which spans are kept, and who reads which of them."""

from edgeweave.telemetry import SpanName
from edgeweave.tracing.span import Origin, Span, SpanContext
from edgeweave.tracing.store import SpanStore

MAX_SPANS = 4


def span(name: str, *, end_us: int = 10) -> Span:
    return Span(name, SpanContext.of(name), None, Origin.CLOUD, 0, end_us)


def names(spans: object) -> list[str]:
    return [each.name for each in spans]  # type: ignore[attr-defined] # any iterable of spans


def test_many_spans_of_requests_do_not_push_out_the_timelines() -> None:
    """Each kind has room of its own, and of each the newest are kept."""
    store = SpanStore(MAX_SPANS)
    store.add_to_timelines(span("bubble"))
    for number in range(9):
        store.add(span(f"step {number}"))
    assert names(store.since(0)) == ["bubble", "step 5", "step 6", "step 7", "step 8"]


def test_readers_get_each_span_of_a_timeline_once() -> None:
    """Who goes on where an answer ended gets what came since, and only that."""
    store = SpanStore(MAX_SPANS)
    read: list[str] = []
    after = 0
    for number in range(10):
        store.add_to_timelines(span(f"{number}"))
        if number % 3 == 0:
            read += names(store.timelines(after=after, begin_us=0))
            after = store.num_of_timelines
    assert read == [str(number) for number in range(10)]
    assert names(store.timelines(after=after, begin_us=0)) == []


def test_a_reader_that_was_long_away_gets_what_is_left() -> None:
    """What was forgotten meanwhile is left out, without an error."""
    store = SpanStore(MAX_SPANS)
    for number in range(10):
        store.add_to_timelines(span(f"{number}"))
    assert names(store.timelines(after=2, begin_us=0)) == ["6", "7", "8", "9"]


def test_a_reader_of_an_earlier_scheduler_gets_all() -> None:
    """Its place is beyond all that came here."""
    store = SpanStore(MAX_SPANS)
    store.add_to_timelines(span("a"))
    assert names(store.timelines(after=1_000, begin_us=0)) == ["a"]


def test_old_spans_are_left_out_where_a_time_is_asked_for() -> None:
    """By their end, in timelines and in all."""
    store = SpanStore(MAX_SPANS)
    store.add_to_timelines(span("old", end_us=5))
    store.add_to_timelines(span("new", end_us=50))
    store.add(span("step", end_us=50))
    assert names(store.timelines(after=0, begin_us=6)) == ["new"]
    assert names(store.since(6)) == ["new", "step"]


def test_a_trace_is_read_by_itself() -> None:
    """The request itself, from the timelines, and what is below it."""
    store = SpanStore(MAX_SPANS)
    root = span(SpanName.GENERATE)
    store.add_to_timelines(root)
    store.add_to_timelines(span("body"))
    store.add(Span(SpanName.QUEUE, root.context.child("queue"), root.context, Origin.SCHEDULER, 0, 1))
    assert names(store.of_trace(root.context.trace)) == [SpanName.GENERATE, SpanName.QUEUE]
