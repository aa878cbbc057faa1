"""Errors in the shape of the OpenAI API.

Knows the one table in `edgeweave.errors`, and what the web framework raises by itself. Nothing of a request's content
and no trace of the stack goes into an answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from edgeweave.errors import (
    AuthenticationError,
    EdgeweaveError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PromptTooLongError,
    statuses_of,
)

_RETRY_AFTER_S = 2
_TRY_AGAIN = (429, 503)
_CODES: Mapping[type[EdgeweaveError], str] = {
    PromptTooLongError: "context_length_exceeded",
    ModelNotFoundError: "model_not_found",
    AuthenticationError: "invalid_api_key",
    OverloadedError: "rate_limit_exceeded",
}
_UNEXPECTED = "an unexpected error; the log of the gateway has the request id of this answer"


class InvalidParameterError(InvalidRequestError):
    """A parameter of the request cannot be used; `param` is its name."""

    def __init__(self, text: str, *, param: str) -> None:
        super().__init__(text)
        self.param = param


def error_body(error: Exception) -> dict[str, Any]:
    """Return what an answer or an event of a stream says about `error`."""
    if not isinstance(error, EdgeweaveError):
        return _body(_UNEXPECTED, "server_error")
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), None)
    param = error.param if isinstance(error, InvalidParameterError) else None
    return _body(str(error), statuses_of(error).openai_type, param=param, code=code)


def error_response(error: Exception) -> JSONResponse:
    """Return the answer for `error`; one that was not foreseen gives status 500 and no detail."""
    if isinstance(error, HTTPException):
        return _framework_response(error)
    status = statuses_of(error).http if isinstance(error, EdgeweaveError) else 500
    headers = {"Retry-After": str(_RETRY_AFTER_S)} if status in _TRY_AGAIN else None
    return JSONResponse(error_body(error), status, headers=headers)


def parameter_error(error: RequestValidationError) -> InvalidParameterError:
    """Return the first thing that is wrong with a body, by the name of its parameter."""
    first: Mapping[str, Any] = error.errors()[0]
    location = first["loc"][1:]
    if first["type"] == "json_invalid":
        return InvalidParameterError(f"the body is not JSON: {first['ctx']['error']}", param="body")
    param = _parameter_name(location) or "body"
    if first["type"] == "extra_forbidden":
        return InvalidParameterError(f"{param} is not a parameter of this server; leave it out", param=param)
    text = f"{param}: {first['msg'][0].lower()}{first['msg'][1:]}"
    return InvalidParameterError(text, param=param)


def _parameter_name(location: Sequence[int | str]) -> str:
    """Return `messages[0].content` for its parts."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _framework_response(error: HTTPException) -> JSONResponse:
    words = {404: "there is nothing at this path; see /openapi.json", 405: "this path has other methods; see Allow"}
    body = _body(words.get(error.status_code, str(error.detail)), "invalid_request_error")
    return JSONResponse(body, error.status_code, headers=error.headers)


def _body(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
