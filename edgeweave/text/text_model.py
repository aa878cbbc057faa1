"""The text side of one model: its tokenizer, its chat template, its limits.

Knows everything that stands between a client's text and token ids. Does not know weights, requests or the
network.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from tokenizers import Tokenizer

from edgeweave.errors import InvalidRequestError, ModelError
from edgeweave.text.chat_template import ChatTemplate, Message
from edgeweave.text.detokenizer import Detokenizer
from edgeweave.text.folder import TextConfig, read_text_config
from edgeweave.text.stop_strings import StopStrings
from edgeweave.text.stream import TextStream


@dataclass(frozen=True)
class TextModel:
    """Text to token ids and back, as one model wants it. Safe to use from several threads.

    `stop_token_ids` end an output unless the client says otherwise. `max_positions` limits prompt and output
    together. Valid token ids are `[0, vocab_size)`.
    """

    tokenizer: Tokenizer
    chat_template: ChatTemplate | None
    stop_token_ids: frozenset[int]
    max_positions: int | None
    vocab_size: int

    @classmethod
    def load(cls, folder: Path, *, now: Callable[[], datetime] | None = None) -> Self:
        """Read the files of `folder` that concern text.

        Raises:
            ModelNotFoundError: the folder or one of its files is missing.
            ModelError: a file cannot be read.
        """
        config = read_text_config(folder)
        tokenizer = _load_tokenizer(config)
        template = config.chat_template and ChatTemplate(
            config.chat_template, special_tokens=config.special_tokens, now=now
        )
        return cls(
            tokenizer=tokenizer,
            chat_template=template or None,
            stop_token_ids=config.eos_token_ids | _eos_of(tokenizer, config),
            max_positions=config.max_positions,
            vocab_size=config.vocab_size or tokenizer.get_vocab_size(),
        )

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of `text`, with the special tokens that the model puts around a text of its own.

        Raises:
            InvalidRequestError: `text` holds half a surrogate pair, which JSON can write and UTF-8 cannot.
        """
        return self._encode(text, add_special_tokens=True)

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids of a conversation that waits for its answer.

        Raises:
            InvalidRequestError: the model has no template, the template refuses the messages, or one of them holds
                half a surrogate pair.
        """
        if self.chat_template is None:
            raise InvalidRequestError("this model has no chat template; ask for a plain completion instead")
        text = self.chat_template.render(messages)
        # The template writes the special tokens itself; the tokenizer must not add a second set.
        return self._encode(text, add_special_tokens=False)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of `token_ids`, without special tokens."""
        return self.tokenizer.decode(list(token_ids))

    def stream(self, *, stop: Sequence[str] = (), context_token_ids: Sequence[int] = ()) -> TextStream:
        """Return a stream for the text of one output, which goes on from `context_token_ids`."""
        detokenizer = Detokenizer(self.tokenizer, context_token_ids=context_token_ids)
        return TextStream(detokenizer, StopStrings(stop))

    def _encode(self, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequestError(f"the prompt is no Unicode text: {error.reason}") from None
        return tuple(self.tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)


def _load_tokenizer(config: TextConfig) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(config.tokenizer_path))
    except Exception as error:  # the library raises the base class
        raise ModelError(f"{config.tokenizer_path} cannot be read: {error}; fetch the model again") from error
    # Files may carry what training used; a prompt is never cut or filled up in silence.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    named = config.special_tokens.values()
    tokenizer.add_special_tokens([token for token in named if tokenizer.token_to_id(token) is not None])
    return tokenizer


def _eos_of(tokenizer: Tokenizer, config: TextConfig) -> frozenset[int]:
    """Return the id of the tokenizer's end of text: a chat model ends its answer with it in any case."""
    token_id = tokenizer.token_to_id(config.special_tokens.get("eos_token", ""))
    return frozenset() if token_id is None else frozenset({token_id})
