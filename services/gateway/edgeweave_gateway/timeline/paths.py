"""The paths of the timeline page.

Knows which path gives what. The page and its scripts say nothing of the site, so they need no key; the spans do.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import cache
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response, StreamingResponse

from edgeweave.client import Client, SpanBatch
from edgeweave.errors import UnavailableError
from edgeweave_gateway.timeline.columns import line_of
from edgeweave_gateway.timeline.files import PAGE, page_files

PATH: Final = "/timeline"
SPANS_PATH: Final = "/timeline/spans"
_FILE_PATH: Final = "/timeline/files/{name}"
_ONLY_THIS_HOST: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_NONE_KEPT: Final = "the scheduler keeps no spans, so there is nothing to draw; start it with more than --keep-spans 0"
Trace = Annotated[str | None, Query(pattern="^[0-9a-f]{32}$", description="only the spans of this trace, in hex")]
After = Annotated[int, Query(ge=0, lt=2**64, description="only what came since this `next`")]
Last = Annotated[float | None, Query(gt=0, le=86_400, description="only what had not ended so many seconds ago")]


class TimelinePaths:
    """The page, its files, and the spans that it draws."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._files = cache(page_files)

    def router(self) -> APIRouter:
        """Return the paths."""
        router = APIRouter(include_in_schema=False)
        router.get(PATH, response_model=None)(self.page)
        router.get(_FILE_PATH, response_model=None)(self.file)
        router.get(SPANS_PATH, response_model=None)(self.spans)
        return router

    async def page(self) -> Response:
        """Return the page."""
        return FileResponse(self._files()[PAGE], headers=_ONLY_THIS_HOST)

    async def file(self, name: str) -> Response:
        """Return a script or a style of the page."""
        path = self._files().get(name)
        if path is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return FileResponse(path, headers=_ONLY_THIS_HOST)

    async def spans(self, trace: Trace = None, after: After = 0, last_s: Last = None) -> Response:
        """Return spans as lines of JSON: those of the engines' timelines, or those of one trace."""
        if trace is not None:
            batches = self._client.read_trace(int(trace, 16))
        else:
            batches = self._client.read_timelines(after=after, last_s=last_s)
        try:
            first = await anext(batches)  # what fails before there is anything has a status of its own
        except StopAsyncIteration:
            raise UnavailableError(_NONE_KEPT) from None
        return StreamingResponse(_lines(first, batches), media_type="application/jsonl", headers=_ONLY_THIS_HOST)


async def _lines(first: SpanBatch, others: AsyncGenerator[SpanBatch, None]) -> AsyncIterator[bytes]:
    async with aclosing(others) as batches:
        yield line_of(first)
        async for batch in batches:
            yield line_of(batch)
