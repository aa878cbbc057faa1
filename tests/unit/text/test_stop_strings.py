"""Stop strings: the text before the first one, whatever pieces it comes in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.text.detokenizer import Detokenizer
from edgeweave.text.stop_strings import StopStrings
from edgeweave.text.stream import TextPiece, TextStream
from fakes.text_model import byte_level_tokenizer

letters = st.text(alphabet="ab", max_size=12)


def before_stop(text: str, stops: list[str]) -> str:
    """Return the text before the stop string that is complete first: letter by letter, the plainest way."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))]
    return text


@given(pieces=st.lists(letters), stops=st.lists(letters.filter(bool), max_size=4))
def test_any_pieces(pieces: list[str], stops: list[str]) -> None:
    """The text given depends on the text alone, not on how it was cut into pieces."""
    matcher = StopStrings(stops)
    given_text = "".join(matcher.push(piece) for piece in pieces) + matcher.finish()
    assert given_text == before_stop("".join(pieces), stops)


@given(pieces=st.lists(letters), stops=st.lists(letters.filter(bool), min_size=1, max_size=4))
def test_nothing_leaks(pieces: list[str], stops: list[str]) -> None:
    """What is given at any moment never ends with a part of a stop string that later becomes whole."""
    matcher = StopStrings(stops)
    final = before_stop("".join(pieces), stops)
    given_text = ""
    for piece in pieces:
        given_text += matcher.push(piece)
        assert final.startswith(given_text)


@given(pieces=st.lists(letters), stop=letters.filter(bool))
def test_holds_no_more_than_it_must(pieces: list[str], stop: str) -> None:
    """At most one letter less than the longest stop string is held back."""
    matcher = StopStrings([stop])
    given_text = "".join(matcher.push(piece) for piece in pieces)
    if not matcher.stopped:
        assert len("".join(pieces)) - len(given_text) < len(stop)


def test_empty_stop_string_is_refused() -> None:
    """An empty stop string would end every output at once."""
    with pytest.raises(ValueError, match="must not be empty"):
        StopStrings(["a", ""])


def test_stop_string_across_tokens() -> None:
    """A stop string that is spelled by several tokens never shows, and the tokens behind it are not taken."""
    tokenizer = byte_level_tokenizer()
    token_ids = tuple(tokenizer.encode("one #!# two").ids)
    stream = TextStream(Detokenizer(tokenizer), StopStrings(["#!#"]))
    pieces = [stream.push((token_id,)) for token_id in token_ids]
    stopped_at = next(index for index, piece in enumerate(pieces) if piece.stopped)
    assert "".join(piece.text for piece in pieces) == "one "
    assert stopped_at < len(token_ids) - 1
    again = TextStream(Detokenizer(tokenizer), StopStrings(["#!#"]))
    assert again.push(token_ids) == TextPiece("one ", stopped_at + 1, stopped=True)


def test_part_of_a_stop_string_at_the_end() -> None:
    """What only began a stop string is given when the output ends."""
    tokenizer = byte_level_tokenizer()
    stream = TextStream(Detokenizer(tokenizer), StopStrings(["#!#"]))
    piece = stream.push(tuple(tokenizer.encode("one #!").ids))
    assert (piece.text, stream.finish().text) == ("one ", "#!")
