"""One exception tree, and one table from exceptions to gRPC and HTTP statuses.

    EdgeweaveError
    |- InvalidRequestError         the caller's input is wrong; nothing was started
    |  |- PromptTooLongError       the prompt (with max_tokens) can never fit
    |  `- InvalidSettingsError     a settings file, variable or flag is wrong; lists every error at once
    |- ModelError                  a model folder cannot be used
    |  |- ModelNotFoundError       the folder or one of its files is missing
    |  |- ModelNotSupportedError   the architecture cannot be cut; says which layer and why
    |  `- SplitError               the split does not fit the model
    |- MismatchError               two sides hold different models, splits, dtypes or versions
    |- AuthenticationError         the API key is missing or wrong
    |- OverloadedError             the queue is full; try again later
    |- DeadlineError               the request's own deadline passed
    |- UnavailableError            the mesh does not serve now; try again
    |  `- SessionLostError         a stream of the session broke; names it
    |     `- LaneClosedError       a lane was closed by a peer that did not say why; its task stream may
    |- StaleSessionError           a session number that is lower than the one that is served, or not known
    |- ProtocolError               a peer broke a rule of the protocol; the session ends
    `- UnitFailedError             a unit of work failed in an engine; names stage and engine

Knows statuses; does not import grpc: statuses are named by their canonical words.
"""

from typing import NamedTuple


class EdgeweaveError(Exception):
    """Base of every error that edgeweave raises on purpose. Its text is one line: what, where, what to do."""


class InvalidRequestError(EdgeweaveError):
    """The caller's input is wrong; nothing was started."""


class PromptTooLongError(InvalidRequestError):
    """A prompt, with its output limit, can never fit."""


class InvalidSettingsError(InvalidRequestError):
    """Settings are wrong. The text holds one line for each error."""


class ModelError(EdgeweaveError):
    """A model folder cannot be used."""


class ModelNotFoundError(ModelError):
    """The folder, or one of its files, is missing."""


class ModelNotSupportedError(ModelError):
    """The architecture cannot be cut by layers."""


class SplitError(ModelError):
    """The split does not fit the model."""


class MismatchError(EdgeweaveError):
    """Two sides hold different models, splits, dtypes or versions."""


class AuthenticationError(EdgeweaveError):
    """The API key is missing or wrong."""


class OverloadedError(EdgeweaveError):
    """The queue is full."""


class DeadlineError(EdgeweaveError):
    """The request's own deadline passed."""


class UnavailableError(EdgeweaveError):
    """The mesh does not serve now."""


class SessionLostError(UnavailableError):
    """A stream of the session broke."""


class LaneClosedError(SessionLostError):
    """A lane was closed by its peer, which did not say why; the task stream of the peer may."""


class StaleSessionError(EdgeweaveError):
    """A session number that is not the one that is served."""


class ProtocolError(EdgeweaveError):
    """A peer broke a rule of the protocol."""


class UnitFailedError(EdgeweaveError):
    """A unit of work failed in an engine."""


class Statuses(NamedTuple):
    """How one kind of error is told to a caller."""

    grpc: str
    http: int
    openai_type: str


STATUSES: dict[type[EdgeweaveError], Statuses] = {
    InvalidRequestError: Statuses("INVALID_ARGUMENT", 400, "invalid_request_error"),
    ModelNotFoundError: Statuses("NOT_FOUND", 404, "invalid_request_error"),
    ModelError: Statuses("FAILED_PRECONDITION", 400, "invalid_request_error"),
    MismatchError: Statuses("FAILED_PRECONDITION", 503, "service_unavailable"),
    AuthenticationError: Statuses("UNAUTHENTICATED", 401, "authentication_error"),
    OverloadedError: Statuses("RESOURCE_EXHAUSTED", 429, "rate_limit_error"),
    DeadlineError: Statuses("DEADLINE_EXCEEDED", 504, "timeout_error"),
    UnavailableError: Statuses("UNAVAILABLE", 503, "service_unavailable"),
    StaleSessionError: Statuses("FAILED_PRECONDITION", 503, "service_unavailable"),
    ProtocolError: Statuses("ABORTED", 500, "server_error"),
    UnitFailedError: Statuses("INTERNAL", 500, "server_error"),
    EdgeweaveError: Statuses("INTERNAL", 500, "server_error"),
}


def statuses_of(error: EdgeweaveError) -> Statuses:
    """Return how `error` is told to a caller: the entry of its nearest class in the tree."""
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return STATUSES[kind]
    raise TypeError(f"{type(error).__name__} is not an EdgeweaveError")


def error_for_grpc(code: str, text: str) -> EdgeweaveError:
    """Return the exception that a gRPC status of this name stands for, with `text`."""
    for kind, statuses in STATUSES.items():
        if statuses.grpc == code:
            return kind(text)
    return EdgeweaveError(text)
