"""The paths of the gateway.

Knows which path asks for what, and puts the parts together for one request. Does not know how any of them works.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from uuid import uuid4

from fastapi import APIRouter, Request
from opentelemetry.trace import Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.responses import JSONResponse, Response

from edgeweave.client.text_client import TextClient
from edgeweave.errors import ModelNotFoundError
from edgeweave_gateway.answers import streamed_answer, whole_answer
from edgeweave_gateway.choices import ChoiceMaker, Choices
from edgeweave_gateway.event_stream import EventStream
from edgeweave_gateway.generation import Generation
from edgeweave_gateway.presence import while_connected
from edgeweave_gateway.readiness import Readiness
from edgeweave_gateway.replies import Body, ChatReplies, CompletionReplies, Replies
from edgeweave_gateway.requests import ChatRequest, CompletionRequest, GenerationRequest
from edgeweave_gateway.spans import note_error, start_span

_MOST_NAME_CHARACTERS = 100


@dataclass(frozen=True)
class Routes:
    """What the paths need. `now_s` tells the time of day; `stopping` is set when the gateway stops."""

    model_name: str
    choice_maker: ChoiceMaker
    client: TextClient
    readiness: Readiness
    tracer: Tracer
    now_s: Callable[[], float]
    stopping: asyncio.Event

    def router(self) -> APIRouter:
        """Return all paths."""
        router = APIRouter()
        post, get = partial(router.post, response_model=None), partial(router.get, response_model=None)
        post("/v1/chat/completions")(self.chat)
        post("/v1/completions")(self.complete)
        get("/v1/models")(self.models)
        get("/v1/models/{model:path}")(self.model)
        get("/health")(self.health)
        get("/ready")(self.ready)
        return router

    async def chat(self, body: ChatRequest, request: Request) -> Response:
        """Answer a conversation.

        Next: edgeweave.client.client.Client.generate
        """
        choose = partial(self.choice_maker.for_chat, body, max_seq_len=self.readiness.max_seq_len)
        replies = ChatReplies(f"chatcmpl-{uuid4().hex}", self.model_name, int(self.now_s()), _with_usage(body))
        return await self._answer(body, request, choose=choose, replies=replies, operation="chat")

    async def complete(self, body: CompletionRequest, request: Request) -> Response:
        """Go on from a text."""
        choose = partial(self.choice_maker.for_completion, body, max_seq_len=self.readiness.max_seq_len)
        replies = CompletionReplies(f"cmpl-{uuid4().hex}", self.model_name, int(self.now_s()), _with_usage(body))
        return await self._answer(body, request, choose=choose, replies=replies, operation="text_completion")

    async def models(self) -> Body:
        """List the one model."""
        return {"object": "list", "data": [self._model_body()]}

    async def model(self, model: str) -> Body:
        """Describe the one model."""
        self._require_model(model)
        return self._model_body()

    async def health(self) -> Body:
        """Say that this process lives."""
        return {"status": "ok"}

    async def ready(self) -> Response:
        """Say whether a request would be served now, and if not, why."""
        reason = self.readiness.reason
        if reason is None:
            return JSONResponse({"status": "ready"})
        body = {"status": "not ready", "reason": reason}
        return JSONResponse(body, HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": "1"})

    async def _answer(
        self,
        body: GenerationRequest,
        request: Request,
        *,
        choose: Callable[[], Choices],
        replies: Replies,
        operation: str,
    ) -> Response:
        """Answer one request."""
        self._require_model(body.model)
        span = start_span(
            self.tracer,
            body,
            operation=operation,
            request_id=request.state.request_id,
            parent=TraceContextTextMapPropagator().extract(request.headers),
        )
        try:
            # Tokenizing a long prompt takes long; other requests' tokens must not wait for it.
            choices = await asyncio.to_thread(choose)
        except Exception as error:
            note_error(span, error)
            span.end()
            raise
        generation = Generation(
            choices,
            response_id=replies.id,
            model=self.model_name,
            client=self.client,
            span=span,
            stopping=self.stopping,
        )
        if body.stream:
            return EventStream(streamed_answer(generation, replies, include_usage=_with_usage(body)))
        return JSONResponse(await while_connected(request.receive, whole_answer(generation, replies)))

    def _require_model(self, name: str) -> None:
        if name != self.model_name:
            asked = name[:_MOST_NAME_CHARACTERS]
            raise ModelNotFoundError(f"there is no model {asked!r} here; this server has {self.model_name!r}")

    def _model_body(self) -> Body:
        return {"id": self.model_name, "object": "model", "created": 0, "owned_by": "edgeweave"}


def _with_usage(body: GenerationRequest) -> bool:
    return bool(body.stream and body.stream_options and body.stream_options.include_usage)
