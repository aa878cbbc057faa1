"""The bodies of answers, as the OpenAI API has them.

Knows the two forms, chat and plain completion, whole and in pieces. Does not know where text comes from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from edgeweave.client import Usage
from edgeweave.interleave.nouns import FinishReason

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """One output: its text so far, or its newest piece, and its end."""

    text: str
    finish: FinishReason | None = None


class Replies(Protocol):
    """Bodies of one form for one request."""

    @property
    def id(self) -> str:
        """Unique name of the answer."""
        ...

    def whole(self, outputs: Sequence[Output], usage: Usage) -> Body:
        """Return the answer in one body."""
        ...

    def opening(self, index: int) -> list[Body]:
        """Return what comes before the first piece of output `index`."""
        ...

    def piece(self, index: int, output: Output) -> list[Body]:
        """Return the bodies for a piece of output `index`."""
        ...

    def usage(self, usage: Usage) -> Body:
        """Return the last body of a stream whose client asked for the usage."""
        ...


@dataclass(frozen=True, slots=True)
class ChatReplies:
    """Bodies of `/v1/chat/completions`. `with_usage`: the stream ends with the usage, and each body names it."""

    id: str
    model: str
    created: int
    with_usage: bool = False

    def whole(self, outputs: Sequence[Output], usage: Usage) -> Body:
        """Return the answer in one body."""
        choices = [
            {
                "index": index,
                "message": {"role": "assistant", "content": output.text, "refusal": None},
                "logprobs": None,
                "finish_reason": _finish(output),
            }
            for index, output in enumerate(outputs)
        ]
        return {**_head(self, "chat.completion"), "choices": choices, "usage": _usage(usage)}

    def opening(self, index: int) -> list[Body]:
        """Return the body that names the role."""
        return [self._chunk(index, {"role": "assistant", "content": ""})]

    def piece(self, index: int, output: Output) -> list[Body]:
        """Return a body with the text, if there is any, and one with the end, if it is there."""
        text = [self._chunk(index, {"content": output.text})] if output.text else []
        end = [self._chunk(index, {}, finish=_finish(output))] if output.finish else []
        return [*text, *end]

    def usage(self, usage: Usage) -> Body:
        """Return the last body."""
        return {**_head(self, "chat.completion.chunk"), "choices": [], "usage": _usage(usage)}

    def _chunk(self, index: int, delta: Body, *, finish: str | None = None) -> Body:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        named = {"usage": None} if self.with_usage else {}
        return {**_head(self, "chat.completion.chunk"), "choices": [choice], **named}


@dataclass(frozen=True, slots=True)
class CompletionReplies:
    """Bodies of `/v1/completions`. `with_usage`: the stream ends with the usage, and each body names it."""

    id: str
    model: str
    created: int
    with_usage: bool = False

    def whole(self, outputs: Sequence[Output], usage: Usage) -> Body:
        """Return the answer in one body."""
        choices = [_completion_choice(index, output) for index, output in enumerate(outputs)]
        return {**_head(self, "text_completion"), "choices": choices, "usage": _usage(usage)}

    def opening(self, index: int) -> list[Body]:  # noqa: ARG002 - plain completions open with their text
        """Return nothing."""
        return []

    def piece(self, index: int, output: Output) -> list[Body]:
        """Return a body with text and end."""
        named = {"usage": None} if self.with_usage else {}
        return [{**_head(self, "text_completion"), "choices": [_completion_choice(index, output)], **named}]

    def usage(self, usage: Usage) -> Body:
        """Return the last body."""
        return {**_head(self, "text_completion"), "choices": [], "usage": _usage(usage)}


def _head(replies: ChatReplies | CompletionReplies, kind: str) -> Body:
    return {"id": replies.id, "object": kind, "created": replies.created, "model": replies.model}


def _completion_choice(index: int, output: Output) -> Body:
    return {"index": index, "text": output.text, "logprobs": None, "finish_reason": _finish(output)}


def _finish(output: Output) -> str | None:
    return output.finish.name.lower() if output.finish else None


def _usage(usage: Usage) -> Body:
    return {
        "prompt_tokens": usage.num_prompt_tokens,
        "completion_tokens": usage.num_output_tokens,
        "total_tokens": usage.num_prompt_tokens + usage.num_output_tokens,
    }
