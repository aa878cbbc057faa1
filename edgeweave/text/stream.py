"""The text of one output, with its end.

Knows the order of the two steps: ids to text, text to what may be given before a stop string. Does not know
where tokens come from.
"""

from dataclasses import dataclass

from edgeweave.text.detokenizer import Detokenizer
from edgeweave.text.stop_strings import StopStrings


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text that became certain, how many pushed tokens were taken, and whether a stop string was met."""

    text: str
    num_tokens: int
    stopped: bool = False


class TextStream:
    """Turns the ids of one output into pieces of text, up to the first stop string."""

    def __init__(self, detokenizer: Detokenizer, stop_strings: StopStrings) -> None:
        self._detokenizer = detokenizer
        self._stop_strings = stop_strings

    def push(self, token_ids: tuple[int, ...]) -> TextPiece:
        """Return the text of `token_ids`; tokens after the one that completes a stop string are not taken."""
        texts = []
        for num_tokens, token_id in enumerate(token_ids, start=1):
            texts.append(self._stop_strings.push(self._detokenizer.push(token_id)))
            if self._stop_strings.stopped:
                return TextPiece("".join(texts), num_tokens, stopped=True)
        return TextPiece("".join(texts), len(token_ids))

    def finish(self) -> TextPiece:
        """Return the text that was held back, now that no more tokens come."""
        text = self._stop_strings.push(self._detokenizer.finish())
        return TextPiece(text + self._stop_strings.finish(), 0, stopped=self._stop_strings.stopped)
