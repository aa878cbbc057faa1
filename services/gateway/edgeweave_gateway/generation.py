"""Generating all choices of one request side by side.

Knows how choices become requests of the scheduler and pieces of text, and what is counted. Does not know HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from opentelemetry.trace import Span, use_span

from edgeweave.client import Usage
from edgeweave.client.text_client import TextClient, TextDelta
from edgeweave_gateway.choices import Choice, Choices
from edgeweave_gateway.merge import Merge
from edgeweave_gateway.replies import Output
from edgeweave_gateway.spans import note_answer, note_error


class Generation:
    """The outputs of one request, under one span, which ends with it. `stopping` ends it early with an error."""

    def __init__(
        self,
        choices: Choices,
        *,
        response_id: str,
        model: str,
        client: TextClient,
        span: Span,
        stopping: asyncio.Event,
    ) -> None:
        self._choices = choices
        self._response_id = response_id
        self._model = model
        self._client = client
        self._span = span
        self._stopping = stopping
        self._num_output_tokens = 0
        self._finish_reasons: dict[int, str] = {}

    @property
    def num_choices(self) -> int:
        """How many outputs there are."""
        return len(self._choices.choices)

    @property
    def usage(self) -> Usage:
        """Tokens of all prompts, and of the outputs that have ended."""
        return Usage(self._choices.num_prompt_tokens, self._num_output_tokens)

    async def pieces(self) -> AsyncGenerator[tuple[int, Output], None]:
        """Yield new text with the index of its output, until all have ended; closing aborts what has not."""
        with use_span(self._span, record_exception=False, set_status_on_exception=False):
            streams = [self._stream(index, choice) for index, choice in enumerate(self._choices.choices)]
        try:
            async with aclosing(Merge(streams, stopping=self._stopping).items()) as items:
                async for index, delta in items:
                    self._count(index, delta)
                    yield index, Output(delta.text, delta.finish)
        except Exception as error:
            note_error(self._span, error)
            raise
        finally:
            self._end_span()

    def _stream(self, index: int, choice: Choice) -> AsyncGenerator[TextDelta, None]:
        deltas = self._client.generate(
            choice.prompt_token_ids,
            max_tokens=choice.max_tokens,
            sampling=choice.sampling,
            stop=self._choices.stop,
            stop_token_ids=self._choices.stop_token_ids,
            context_token_ids=choice.context_token_ids,
            request_id=f"{self._response_id}-{index}",
        )
        return _after(choice.echo, deltas) if choice.echo else deltas

    def _count(self, index: int, delta: TextDelta) -> None:
        if delta.finish is not None:
            self._finish_reasons[index] = delta.finish.name.lower()
        if delta.usage is not None:
            self._num_output_tokens += delta.usage.num_output_tokens

    def _end_span(self) -> None:
        note_answer(
            self._span,
            response_id=self._response_id,
            model=self._model,
            usage=self.usage,
            finish_reasons=[reason for _, reason in sorted(self._finish_reasons.items())],
        )
        self._span.end()


async def _after(echo: str, deltas: AsyncGenerator[TextDelta, None]) -> AsyncGenerator[TextDelta, None]:
    """Put `echo` before the first text: not earlier, since the request may still be refused."""
    async with aclosing(deltas):
        async for delta in deltas:
            yield TextDelta(echo + delta.text, delta.finish, delta.usage)
            echo = ""
