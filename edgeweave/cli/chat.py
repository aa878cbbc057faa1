"""A chat over HTTP, as any client of the gateway would have it, with the times that its user sees.

Knows the OpenAI form of a streamed answer. Does not know what is behind the gateway.
"""

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Self

import httpx

from edgeweave.errors import UnavailableError

_TIMEOUT_S = 120.0
_PREFIX = "data: "
_END = "data: [DONE]"


def _ignore(_: str) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its text, how many tokens it took, and when its first and last piece came, from the question on."""

    text: str
    num_tokens: int
    first_s: float
    last_s: float

    @property
    def token_s(self) -> float:
        """Time between two tokens after the first."""
        return (self.last_s - self.first_s) / max(1, self.num_tokens - 1)


class Chat:
    """Asks one question after another at the gateway at `url`, each on its own. An asynchronous context manager."""

    def __init__(self, url: str, *, max_tokens: int) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=_TIMEOUT_S, trust_env=False)
        self._max_tokens = max_tokens
        self._model: str | None = None

    async def __aenter__(self) -> Self:
        """Ask for the name of the model that is served."""
        models = (await self._client.get("/v1/models")).raise_for_status().json()
        self._model = models["data"][0]["id"]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def ask(self, question: str, *, on_text: Callable[[str], None] = _ignore) -> Answer:
        """Return the greedy answer to `question`; `on_text` gets each piece when it comes.

        Raises:
            UnavailableError: the gateway refused or broke off; with its own words.
        """
        begin_s = time.monotonic()
        pieces: list[tuple[str, float]] = []
        num_tokens = 0
        async with aclosing(self._events(question)) as events:
            async for event in events:
                for text in (choice["delta"].get("content") for choice in event["choices"]):
                    if text:
                        pieces.append((text, time.monotonic() - begin_s))
                        on_text(text)
                num_tokens = (event.get("usage") or {}).get("completion_tokens", num_tokens)
        if not pieces:
            raise UnavailableError(f"the gateway gave no text for {question!r}")
        return Answer("".join(text for text, _ in pieces), num_tokens, pieces[0][1], pieces[-1][1])

    async def _events(self, question: str) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of one answer."""
        body = self._body(question)
        async with self._client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.is_error:
                reason = (await response.aread()).decode(errors="replace")
                raise UnavailableError(f"the gateway answers {response.status_code}: {reason}")
            async for line in response.aiter_lines():
                if line.startswith(_PREFIX) and line != _END:
                    event = json.loads(line.removeprefix(_PREFIX))
                    if "error" in event:
                        raise UnavailableError(f"the gateway broke off: {event['error']['message']}")
                    yield event

    def _body(self, question: str) -> dict[str, object]:
        return {
            "model": self._model,
            "messages": [{"role": "user", "content": question}],
            "temperature": 0,
            "max_tokens": self._max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
