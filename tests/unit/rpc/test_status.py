"""An error reaches the caller as the class that it was, and nothing that was not meant to be told does."""

import asyncio
from typing import Any, Never

import grpc
import pytest
import structlog

from edgeweave import errors
from edgeweave.errors import (
    DeadlineError,
    EdgeweaveError,
    InvalidSettingsError,
    ProtocolError,
    SessionLostError,
    UnavailableError,
    UnitFailedError,
)
from edgeweave.rpc.status import error_of, telling_errors


class RecordedContext:
    """A servicer context that remembers how the call was aborted."""

    def __init__(self) -> None:
        self.told: grpc.aio.AioRpcError | None = None

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: Any) -> Never:
        self.told = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing_metadata), details)
        raise grpc.aio.AbortError("Locally aborted.")


async def tell(error: BaseException) -> grpc.aio.AioRpcError:
    """Raise `error` in a servicer and return what its caller gets."""
    context: Any = RecordedContext()
    with pytest.raises(grpc.aio.AbortError):
        async with telling_errors(context):
            raise error
    assert context.told is not None
    told: grpc.aio.AioRpcError = context.told
    return told


CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EdgeweaveError)]


@pytest.mark.parametrize("kind", CLASSES)
async def test_every_error_reaches_the_caller_as_its_own_class_with_its_text(kind: type[EdgeweaveError]) -> None:
    told = await tell(kind("what, where, what to do"))
    assert told.code().name == errors.statuses_of(kind("")).grpc
    received = error_of(told)
    assert type(received) is kind
    assert str(received) == "what, where, what to do"


async def test_what_was_not_foreseen_is_logged_and_told_without_its_text() -> None:
    with structlog.testing.capture_logs() as logs:
        told = await tell(ZeroDivisionError("secret of the prompt"))
    assert told.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (told.details() or "")
    assert [log["event"] for log in logs] == ["call_failed"]
    assert logs[0]["exc_info"]


async def test_an_error_that_another_service_told_goes_on_to_the_caller() -> None:
    inner = await tell(SessionLostError("the prefill lane broke"))
    assert isinstance(error_of(await tell(inner)), SessionLostError)


async def test_a_cancelled_call_stays_cancelled_and_tells_nothing() -> None:
    context: Any = RecordedContext()
    with pytest.raises(asyncio.CancelledError):
        async with telling_errors(context):
            raise asyncio.CancelledError
    assert context.told is None


async def test_a_call_that_was_aborted_inside_is_not_aborted_twice() -> None:
    context: Any = RecordedContext()
    with pytest.raises(grpc.aio.AbortError):
        async with telling_errors(context):
            raise grpc.aio.AbortError("done")
    assert context.told is None


async def test_a_text_longer_than_metadata_allows_is_cut() -> None:
    told = await tell(InvalidSettingsError("ü\n" * 5000))
    assert len(told.details() or "") <= 2000


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, UnavailableError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, DeadlineError),
        (grpc.StatusCode.ABORTED, ProtocolError),
        (grpc.StatusCode.INTERNAL, EdgeweaveError),
        (grpc.StatusCode.UNIMPLEMENTED, EdgeweaveError),
    ],
)
def test_a_status_without_a_class_is_read_by_the_table(code: grpc.StatusCode, kind: type) -> None:
    """The transport ends calls too; an INTERNAL without a class is its own, so no unit failed."""
    failure = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "text")
    assert type(error_of(failure)) is kind
    assert kind is not UnitFailedError


def test_a_status_without_a_text_is_told_by_its_name() -> None:
    failure = grpc.aio.AioRpcError(grpc.StatusCode.CANCELLED, grpc.aio.Metadata(), grpc.aio.Metadata())
    assert str(error_of(failure)) == "CANCELLED"
