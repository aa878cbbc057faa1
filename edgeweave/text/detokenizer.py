"""Token ids to text, one token at a time.

Knows how to give text as soon as it is certain: never half a character, never a space too many or too few.
Rests on `DecodeStream` of the tokenizers library. Does not know stop strings.
"""

from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"
# Enough that a word, or a character spelled in bytes, which the output goes on with begins inside.
_NUM_CONTEXT_TOKENS = 32


class Detokenizer:
    """The text of one output. All texts it gave, joined, equal the decoding of all ids at once.

    `context_token_ids` is what the output goes on from: with it, the first piece keeps the space that a
    tokenizer drops at the start of a text. Special tokens have no text.
    """

    def __init__(self, tokenizer: Tokenizer, *, context_token_ids: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._anchor = _usable_context(tokenizer, context_token_ids)
        self._held: list[int] = []
        self._stream = self._new_stream()

    def push(self, token_id: int) -> str:
        """Return the text that became certain with `token_id`; often empty in the middle of a character."""
        self._held.append(token_id)
        try:
            text = self._stream.step(self._tokenizer, token_id)
        except Exception:  # noqa: BLE001 - the library raises the base class: earlier text reads differently now
            text = self._tokenizer.decode(self._held)
            self._settle()
            self._stream = self._new_stream()
            return text
        if text is None:
            return ""
        self._settle()
        return text

    def finish(self) -> str:
        """Return what is left: an output that ends within a character ends with the replacement character."""
        before = self._tokenizer.decode(self._anchor)
        whole = self._tokenizer.decode([*self._anchor, *self._held])
        text = whole.removeprefix(before) if whole.startswith(before) else self._tokenizer.decode(self._held)
        self._settle()
        return text

    def _settle(self) -> None:
        """Take the text of the held ids as given."""
        if self._held:
            self._anchor = self._held
            self._held = []

    def _new_stream(self) -> DecodeStream:
        return DecodeStream(ids=list(self._anchor), skip_special_tokens=True)


def _usable_context(tokenizer: Tokenizer, token_ids: Sequence[int]) -> list[int]:
    """Return the end of `token_ids`, or nothing if it ends within a character: the stream would repeat it."""
    context = list(token_ids[-_NUM_CONTEXT_TOKENS:])
    return [] if tokenizer.decode(context).endswith(_UNFINISHED) else context
