"""A collector of traces: a real OTLP service over gRPC that keeps what it is sent.

Knows the messages of `opentelemetry-proto`. Does not know what spans mean.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as pb_grpc

_US_PER_NS = 1 / 1000


@dataclass(frozen=True, slots=True)
class Collected:
    """One span as a collector sees it; times are microseconds."""

    service: str
    name: str
    trace: bytes
    span: bytes
    parent: bytes
    begin_us: float
    end_us: float
    attributes: dict[str, Any]
    links: tuple[bytes, ...]

    @property
    def length_us(self) -> float:
        """How long it took."""
        return self.end_us - self.begin_us


@dataclass
class Collector(pb_grpc.TraceServiceServicer):
    """Keeps every span, in the order in which they came; `exported` is room for the same as a file."""

    endpoint: str = ""
    spans: list[Collected] = field(default_factory=list)
    exported: dict[str, Any] = field(default_factory=dict)

    async def Export(  # noqa: N802 - named by the contract
        self, request: pb.ExportTraceServiceRequest, _context: object
    ) -> pb.ExportTraceServiceResponse:
        """Take spans."""
        self.spans += _collected(request)
        return pb.ExportTraceServiceResponse()

    def named(self, name: str) -> list[Collected]:
        """Return the spans with this name, in order of time."""
        return sorted((span for span in self.spans if span.name == name), key=lambda span: span.begin_us)

    def below(self, parent: Collected) -> list[Collected]:
        """Return the children of a span, in order of time."""
        return sorted((span for span in self.spans if span.parent == parent.span), key=lambda span: span.begin_us)


@asynccontextmanager
async def collector(address: str = "127.0.0.1:0") -> AsyncIterator[Collector]:
    """Serve a collector at `address`, with port 0 at a free one, for the time of the block."""
    served, server = Collector(), grpc.aio.server()
    pb_grpc.add_TraceServiceServicer_to_server(served, server)  # type: ignore[no-untyped-call]  # untyped there
    served.endpoint = f"http://{address.rpartition(':')[0]}:{server.add_insecure_port(address)}"
    await server.start()
    try:
        yield served
    finally:
        await server.stop(None)


def _collected(request: pb.ExportTraceServiceRequest) -> Iterator[Collected]:
    for resource_spans in request.resource_spans:
        service = _values(resource_spans.resource.attributes)["service.name"]
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield Collected(
                    service=service,
                    name=span.name,
                    trace=span.trace_id,
                    span=span.span_id,
                    parent=span.parent_span_id,
                    begin_us=span.start_time_unix_nano * _US_PER_NS,
                    end_us=span.end_time_unix_nano * _US_PER_NS,
                    attributes=_values(span.attributes),
                    links=tuple(link.span_id for link in span.links),
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
