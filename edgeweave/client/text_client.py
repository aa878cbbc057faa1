"""The client for text.

Knows how to ask for text and how an output ends by a stop string. Does not know HTTP.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from edgeweave.client.client import Client
from edgeweave.client.deltas import TokenDelta, Usage
from edgeweave.interleave.nouns import GREEDY, FinishReason, Sampling
from edgeweave.text import TextModel, TextStream
from edgeweave.text.chat_template import Message


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of an output; the last one has finish and usage, and perhaps no text."""

    text: str
    finish: FinishReason | None = None
    usage: Usage | None = None


class TextClient:
    """Asks a scheduler for text. Tokenizer, template and end of text are those of `text_model`.

    The errors are those of `Client`. A stream that is left early is closed by `contextlib.aclosing`.
    """

    def __init__(self, client: Client, text_model: TextModel) -> None:
        self._client = client
        self._text_model = text_model

    def chat(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        deadline_s: float | None = None,
    ) -> AsyncGenerator[TextDelta, None]:
        """Generate the answer to a conversation, up to its end, `max_tokens` or the first stop string."""
        return self.generate(
            self._text_model.encode_chat(messages),
            max_tokens=max_tokens,
            sampling=sampling,
            stop=stop,
            stop_token_ids=self._text_model.stop_token_ids,
            deadline_s=deadline_s,
        )

    def complete(
        self,
        prompt: str,
        *,
        max_tokens: int,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        deadline_s: float | None = None,
    ) -> AsyncGenerator[TextDelta, None]:
        """Generate text that goes on from `prompt`, up to its end, `max_tokens` or the first stop string."""
        prompt_token_ids = self._text_model.encode(prompt)
        return self.generate(
            prompt_token_ids,
            max_tokens=max_tokens,
            sampling=sampling,
            stop=stop,
            stop_token_ids=self._text_model.stop_token_ids,
            context_token_ids=prompt_token_ids,
            deadline_s=deadline_s,
        )

    def generate(
        self,
        prompt_token_ids: Sequence[int],
        *,
        max_tokens: int,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        stop_token_ids: Collection[int] = (),
        context_token_ids: Sequence[int] = (),
        request_id: str | None = None,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[TextDelta, None]:
        """Generate text for a prompt of token ids.

        Args:
            prompt_token_ids: the prompt, at least one token.
            max_tokens: most output tokens.
            sampling: how tokens are drawn.
            stop: strings that end the output; they are not given.
            stop_token_ids: tokens that end the output; they are not given.
            context_token_ids: the text that the output goes on from; empty for an answer that stands alone.
            request_id: name for logs and spans of the site; None: the scheduler gives one.
            deadline_s: longest time for the whole request; None: no limit.
        """
        deltas = self._client.generate(
            prompt_token_ids,
            max_tokens=max_tokens,
            sampling=sampling,
            stop_token_ids=stop_token_ids,
            request_id=request_id,
            deadline_s=deadline_s,
        )
        stream = self._text_model.stream(stop=stop, context_token_ids=context_token_ids)
        return _texts(deltas, stream, stop_token_ids=frozenset(stop_token_ids), num_prompt_tokens=len(prompt_token_ids))


async def _texts(
    deltas: AsyncGenerator[TokenDelta, None],
    stream: TextStream,
    *,
    stop_token_ids: frozenset[int],
    num_prompt_tokens: int,
) -> AsyncGenerator[TextDelta, None]:
    """Yield the text of `deltas`; a stop string ends the request before its last piece is given."""
    num_tokens = 0
    last = TextDelta("")
    async with aclosing(deltas):
        async for delta in deltas:
            piece = stream.push(_shown(delta, stop_token_ids))
            num_tokens += piece.num_tokens
            if piece.stopped:
                last = TextDelta(piece.text, FinishReason.STOP, Usage(num_prompt_tokens, num_tokens))
                break
            if delta.finish is not None:
                rest = stream.finish()
                finish = FinishReason.STOP if rest.stopped else delta.finish
                last = TextDelta(piece.text + rest.text, finish, delta.usage)
            elif piece.text:
                yield TextDelta(piece.text)
    yield last


def _shown(delta: TokenDelta, stop_token_ids: frozenset[int]) -> tuple[int, ...]:
    """Return the tokens that have text: the one that ended the output has none."""
    ended = delta.finish is FinishReason.STOP and delta.token_ids[-1:] and delta.token_ids[-1] in stop_token_ids
    return delta.token_ids[:-1] if ended else delta.token_ids
