"""What every call of the client needs.

Knows how a stream of responses ends, what goes along with a call, and how values that no message can hold are told.
Does not know any particular message.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import TypeVar

import grpc.aio
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from edgeweave.errors import EdgeweaveError, InvalidRequestError, UnavailableError
from edgeweave.rpc.status import error_of

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


async def responses(
    call: grpc.aio.UnaryStreamCall[RequestT, ResponseT], *, target: str
) -> AsyncGenerator[ResponseT, None]:
    """Yield what `call` answers; closing the generator cancels the call."""
    try:
        async for response in call:
            yield response
    except grpc.aio.AioRpcError as failure:
        raise call_error(failure, target=target) from failure
    finally:
        call.cancel()


def call_error(failure: grpc.aio.AioRpcError, *, target: str) -> EdgeweaveError:
    """Return the error that `failure` stands for; where nobody answered, one that says who did not."""
    error = error_of(failure)
    if type(error) is UnavailableError and not failure.trailing_metadata():
        return UnavailableError(f"the scheduler at {target} does not answer ({error}); is it running?")
    return error


def trace_metadata() -> tuple[tuple[str, str], ...]:
    """Return the W3C trace context of the caller as metadata; nothing without a span. Baggage stays here."""
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return tuple(carrier.items())


@contextmanager
def refused_values() -> Iterator[None]:
    """Raise InvalidRequestError in place of what protobuf says to a number that its field cannot hold."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"a value of the request cannot be sent: {error}") from error
