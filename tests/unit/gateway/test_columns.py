"""The shape in which a browser gets spans."""

import json

from edgeweave.client import SpanBatch
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.span import Origin, Span, SpanContext
from edgeweave_gateway.timeline.columns import columns, line_of

ONE, OTHER, ENGINE = SpanContext.of("one"), SpanContext.of("other"), SpanContext.of("engine")


def body() -> Span:
    """A step of two rows of one request and one row of another."""
    links = (ONE.child("step", 1), OTHER.child("step", 1), ONE.child("step", 2))
    attributes = {Attribute.STEP: 1, Attribute.NUM_ROWS: 3}
    return Span(SpanName.BODY, ENGINE.child("body"), ENGINE, Origin.CLOUD, 5, 9, attributes, links)


def bubble() -> Span:
    attributes = {Attribute.CAUSE: "link"}
    return Span(SpanName.BUBBLE, ENGINE.child("bubble"), ENGINE, Origin.EDGE, 9, 11, attributes)


def test_columns_have_one_row_a_span() -> None:
    """All but `traces` and `attributes` are as long as there are spans; what a span has not is none."""
    assert columns([body(), bubble()]) == {
        "name": ["body", "bubble"],
        "service": ["cloud", "edge"],
        "begin_us": [5, 9],
        "end_us": [9, 11],
        "trace": [0, 0],
        "links": [[1, 2], []],
        "traces": [f"{context.trace:032x}" for context in (ENGINE, ONE, OTHER)],
        "attributes": {"step": [1, None], "num_rows": [3, None], "cause": [None, "link"]},
    }


def test_a_line_is_json_and_says_where_to_go_on() -> None:
    """One line, whatever is in it; no spans are a line too."""
    line = line_of(SpanBatch((body(),), 12))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line)["next"] == 12
    assert json.loads(line_of(SpanBatch((), 3)))["name"] == []
