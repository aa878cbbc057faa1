"""Errors as gRPC statuses, and back as the same class of error.

Knows the table in `edgeweave.errors` and that the exact class travels in the trailing metadata. Nothing but the text
of an `EdgeweaveError` is ever told to a caller: what was not foreseen is logged here and told as an internal error.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Never

import grpc
import structlog

from edgeweave.errors import EdgeweaveError, error_for_grpc, statuses_of

# What gRPC says where an rpc ended while a message was being sent: the status of the peer is lost then.
SHADOWED = "Internal error from Core"
_CLASS_KEY = "edgeweave-error"
# Metadata is limited to 8 KiB in all, and a text of several lines grows when it is encoded.
_MOST_TEXT_CHARACTERS = 2000

_log = structlog.get_logger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


async def abort(context: Context, error: EdgeweaveError) -> Never:
    """End the call with the status of `error`, its text and its class."""
    code = grpc.StatusCode[statuses_of(error).grpc]
    text = str(error)[:_MOST_TEXT_CHARACTERS]
    await context.abort(code, text, ((_CLASS_KEY, type(error).__name__),))


def error_of(failure: grpc.aio.AioRpcError) -> EdgeweaveError:
    """Return the error that a failed call stands for: of the class that the peer raised, if it said so."""
    name = dict(failure.trailing_metadata() or ()).get(_CLASS_KEY)
    text = failure.details() or failure.code().name
    for kind in _tree(EdgeweaveError):
        if kind.__name__ == name:
            return kind(text)
    if failure.code() is grpc.StatusCode.INTERNAL:
        return EdgeweaveError(text)  # of the transport or of a foreign peer: no unit failed
    return error_for_grpc(failure.code().name, text)


@asynccontextmanager
async def telling_errors(context: Context) -> AsyncIterator[None]:
    """Tell the caller what goes wrong inside: the body of a servicer's method.

    An EdgeweaveError becomes its status; so does one that another service told. A cancelled call stays cancelled.
    Anything else is logged with its trace, and the caller hears only that it happened.
    """
    try:
        yield
    except EdgeweaveError as error:
        await abort(context, error)
    except grpc.aio.AioRpcError as failure:
        await abort(context, error_of(failure))
    except (asyncio.CancelledError, grpc.aio.AbortError):
        raise
    except Exception as error:  # noqa: BLE001 - the border of the service: the caller hears of whatever it is
        _log.exception("call_failed", error=type(error).__name__)
        await abort(context, EdgeweaveError("an internal error, see the log of the service"))


def when_over(context: Context, call: Callable[[], None]) -> None:
    """Let `call` be called once the rpc of `context` is over, however it ends.

    gRPC leaves a servicer's generator where it is when its rpc is cancelled while a response is being sent; what has to
    happen then must not wait for the generator to be closed.
    """
    context.add_done_callback(lambda _: call())  # type: ignore[arg-type]  # the stub names a class that is not there


def _tree(root: type[EdgeweaveError]) -> Iterator[type[EdgeweaveError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _tree(kind)
