"""Spans as columns: what the page reads, a line of JSON for some hundreds of spans.

Knows the shape of a line. Does not know what the page draws of it.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from edgeweave.client import SpanBatch
from edgeweave.tracing.span import Span

_PREFIX = "edgeweave."


def line_of(batch: SpanBatch) -> bytes:
    """Return a batch as a line: its columns, and where to go on."""
    content = {**columns(batch.spans), "next": batch.next}
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def columns(spans: Sequence[Span]) -> dict[str, Any]:
    """Return spans by columns, all of one length but `traces` and `attributes`.

    Times are microseconds of the wall clock. `trace` and `links` hold places in `traces`, which has each trace once, in
    hex: a step of sixteen rows links to sixteen. `attributes` has a column for each attribute that any span has.
    """
    places: dict[int, int] = {}

    def place_of(trace: int) -> int:
        return places.setdefault(trace, len(places))

    rows = {
        "name": [span.name for span in spans],
        "service": [span.origin.value.removeprefix("edgeweave-") for span in spans],
        "begin_us": [span.begin_us for span in spans],
        "end_us": [span.end_us for span in spans],
        "trace": [place_of(span.context.trace) for span in spans],
        "links": [sorted({place_of(link.trace) for link in span.links}) for span in spans],
    }
    names = _in_order(name for span in spans for name in span.attributes)
    attributes = {name.removeprefix(_PREFIX): [span.attributes.get(name) for span in spans] for name in names}
    return {**rows, "traces": [f"{trace:032x}" for trace in places], "attributes": attributes}


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
