"""The chat template: messages to the text of a prompt.

Knows the dialect of Jinja that checkpoints are written in, and renders it in a sandbox. Does not know tokens.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgeweave.errors import InvalidRequestError, ModelError

Message = Mapping[str, Any]


class ChatTemplate:
    """A compiled template together with the special tokens that it may name.

    `now` is what a template that prints today's date asks for the time.
    """

    def __init__(
        self, source: str, *, special_tokens: Mapping[str, str], now: Callable[[], datetime] | None = None
    ) -> None:
        environment = _environment(now or _local_time)
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ModelError(f"the chat template of the model cannot be read: {_one_line(error)}") from error
        self._special_tokens = dict(special_tokens)

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """Return the prompt for `messages`, ready for the answer of the model.

        Raises:
            InvalidRequestError: the template refuses the messages, for their roles or their order.
        """
        try:
            return self._template.render(
                messages=[_without_nones(message) for message in messages],
                tools=None,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
            )
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise InvalidRequestError(
                f"the chat template of the model refuses these messages: {_one_line(error)}"
            ) from error


class _Generation(Extension):
    """Reads `{% generation %}` blocks, which mark text of the assistant for training, as plain text."""

    tags = {"generation"}  # noqa: RUF012 - the name and the form are jinja2's

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the body of the block as a scope of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def _environment(now: Callable[[], datetime]) -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: now().strftime(form)
    return environment


def _tojson(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - templates pass these by position and by name
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002 - the same
) -> str:
    """Return JSON as a prompt needs it: Jinja's own filter would escape for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _local_time() -> datetime:
    return datetime.now().astimezone()


def _without_nones(message: Message) -> dict[str, Any]:
    """Leave out what is None: many templates print the word where they would bear a missing key."""
    return {key: value for key, value in message.items() if value is not None}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
