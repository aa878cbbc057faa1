"""The web application of the gateway.

Knows its layers, from outside to inside: metrics, ids and logs, API keys, the size of bodies, paths. Does not know a
server.
"""

from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp

import edgeweave
from edgeweave.clock import Clock
from edgeweave.errors import EdgeweaveError
from edgeweave.metrics import PATH, HttpMeter
from edgeweave_gateway.api_keys import ApiKeys
from edgeweave_gateway.body_limit import BodyLimit
from edgeweave_gateway.front import Front
from edgeweave_gateway.http_errors import error_response, parameter_error
from edgeweave_gateway.metered import Metered, MetricsPage
from edgeweave_gateway.routes import Routes
from edgeweave_gateway.timeline import SPANS_PATH, TimelinePaths

_STATUS_CLIENT_LEFT = 499


def create_app(
    routes: Routes,
    *,
    timeline: TimelinePaths,
    api_keys: Sequence[str],
    max_body_bytes: int,
    clock: Clock,
    metrics_need_key: bool = True,
) -> ASGIApp:
    """Return the application: `routes` and `timeline` behind keys and limits, and the metrics of all that."""
    meter = HttpMeter()
    app = FastAPI(
        title="edgeweave gateway",
        version=edgeweave.__version__,
        redirect_slashes=False,
        docs_url=None,  # the page would load its script from outside of the site; /openapi.json stays
        redoc_url=None,
    )
    app.include_router(routes.router())
    app.include_router(timeline.router())
    app.add_api_route(PATH, MetricsPage(meter, routes.readiness).tell, include_in_schema=False, response_model=None)
    for kind in (EdgeweaveError, HTTPException, Exception):
        app.add_exception_handler(kind, _tell)
    app.add_exception_handler(RequestValidationError, _tell_parameter)
    app.add_exception_handler(ClientDisconnect, _tell_nobody)
    limited = BodyLimit(app, max_body_bytes=max_body_bytes)
    guarded = ApiKeys(limited, keys=api_keys, also=(SPANS_PATH, PATH) if metrics_need_key else (SPANS_PATH,))
    return Metered(Front(guarded, clock=clock), meter=meter, clock=clock)


async def _tell(_request: Request, error: Exception) -> Response:
    return error_response(error)


async def _tell_parameter(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise TypeError(f"{type(error).__name__} is not about parameters")
    return error_response(parameter_error(error))


async def _tell_nobody(_request: Request, _error: Exception) -> Response:
    """Return an answer that only the log sees: the client closed the connection."""
    return Response(status_code=_STATUS_CLIENT_LEFT)
