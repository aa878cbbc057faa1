"""Spans in the files that viewers open, each checked against the model of its viewer."""
# ruff: noqa: N815 - fields are named as Jaeger names them

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2
from pydantic import BaseModel, ConfigDict

from edgeweave.telemetry import SpanName
from edgeweave.tracing.formats.jaeger import jaeger_json
from edgeweave.tracing.formats.otlp_json import otlp_json
from edgeweave.tracing.formats.perfetto import perfetto_json
from edgeweave.tracing.span import Origin, Span, SpanContext
from fakes.traced import woven


class Strict(BaseModel):
    """A part of a file that has these fields and no other."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reference(Strict):
    refType: str
    traceID: str
    spanID: str


class Tag(Strict):
    key: str
    type: str
    value: str | int | float | bool


class JaegerSpan(Strict):
    traceID: str
    spanID: str
    operationName: str
    references: list[Reference]
    startTime: int
    duration: int
    tags: list[Tag]
    logs: list[Any]
    processID: str


class Process(Strict):
    serviceName: str
    tags: list[Tag]


class JaegerTrace(Strict):
    traceID: str
    spans: list[JaegerSpan]
    processes: dict[str, Process]


class JaegerFile(Strict):
    data: list[JaegerTrace]


@pytest.fixture(scope="module")
def spans() -> list[Span]:
    """All spans of three requests under 2p1d."""
    return woven("2p1d").spans


def test_jaeger_gets_every_span_once_below_its_parent(spans: list[Span]) -> None:
    """Traces, processes and references as its UI reads them; a parent is in the same trace."""
    file = JaegerFile.model_validate(json.loads(json.dumps(jaeger_json(spans))))
    assert sum(len(trace.spans) for trace in file.data) == len(spans)
    for trace in file.data:
        for span in trace.spans:
            assert span.traceID == trace.traceID
            assert span.processID in trace.processes
            parents = [reference for reference in span.references if reference.refType == "CHILD_OF"]
            assert len(parents) <= 1
            assert all(parent.traceID == trace.traceID for parent in parents)
    segments = [s for trace in file.data for s in trace.spans if s.operationName == SpanName.SEGMENT]
    names = {trace.processes[s.processID].serviceName for trace in file.data for s in trace.spans if s in segments}
    assert names == {"edgeweave-cloud"}


def test_otlp_json_is_read_by_the_generated_parser(spans: list[Span]) -> None:
    """Its ids are hex where protobuf's own JSON has base64: with that changed, all of it is a message of OTLP."""
    content = json.loads(json.dumps(otlp_json(spans)))
    for resource in content["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for owner in (span, *span["links"]):
                    _to_base64(owner)
    message = json_format.ParseDict(content, trace_pb2.TracesData())
    read = [span for each in message.resource_spans for scope in each.scope_spans for span in scope.spans]
    assert {(each.trace_id, each.span_id): (each.name, each.end_time_unix_nano) for each in read} == {
        (span.context.trace.to_bytes(16, "big"), span.context.span.to_bytes(8, "big")): (span.name, 1000 * span.end_us)
        for span in spans
    }


def _to_base64(owner: dict[str, Any]) -> None:
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in owner:
            owner[key] = base64.b64encode(bytes.fromhex(owner[key])).decode()


def test_perfetto_has_one_track_for_each_engine_without_overlap(spans: list[Span]) -> None:
    """Units and gaps of one engine follow each other; what a request's chunk or step did is on a track of its own."""
    events = json.loads(json.dumps(perfetto_json(spans)))["traceEvents"]
    tracks: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            tracks.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(tracks) == 2
    for track in tracks.values():
        assert all(one[1] <= next_[0] + 20 for one, next_ in pairwise(track))
    begun = [(event["id"], event["name"]) for event in events if event["ph"] == "b"]
    ended = [(event["id"], event["name"]) for event in events if event["ph"] == "e"]
    assert sorted(begun) == sorted(ended)
    assert len(begun) > 20


def test_an_error_is_told_to_every_viewer() -> None:
    context = SpanContext.of("a")
    span = Span("chunk", context, None, Origin.SCHEDULER, 5, 9, {"x": True, "y": 1.5}, error="lost")
    assert otlp_json([span])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"]["code"] == 2
    tags = jaeger_json([span])["data"][0]["spans"][0]["tags"]
    assert {tag["key"]: tag["type"] for tag in tags} == {"x": "bool", "y": "float64", "error": "bool"}
