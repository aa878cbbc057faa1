"""Ids to text: nothing is given too early, nothing is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from edgeweave.text.detokenizer import Detokenizer
from fakes.text_model import byte_fallback_tokenizer, byte_level_tokenizer

BYTE_LEVEL = byte_level_tokenizer()
BYTE_FALLBACK = byte_fallback_tokenizer()
TOKENIZERS = pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, BYTE_FALLBACK], ids=["bytes", "fallback"])


def id_of(piece: str) -> int:
    token_id = BYTE_FALLBACK.token_to_id(piece)
    assert token_id is not None
    return token_id


def pieces_of(tokenizer: Tokenizer, token_ids: list[int], context: list[int] | None = None) -> list[str]:
    detokenizer = Detokenizer(tokenizer, context_token_ids=context or [])
    return [*(detokenizer.push(token_id) for token_id in token_ids), detokenizer.finish()]


@TOKENIZERS
@settings(deadline=None, max_examples=150)
@given(text=st.text(max_size=40))
def test_joined_pieces_are_the_text(tokenizer: Tokenizer, text: str) -> None:
    """Joined pieces equal the decoding of all ids at once, for any text."""
    token_ids = tokenizer.encode(text).ids
    assert "".join(pieces_of(tokenizer, token_ids)) == tokenizer.decode(token_ids)


@settings(deadline=None, max_examples=300)
@given(token_ids=st.lists(st.integers(0, BYTE_LEVEL.get_vocab_size() - 1), max_size=40))
def test_any_ids_of_bytes(token_ids: list[int]) -> None:
    """A model may sample anything: broken characters and special tokens give what decoding at once gives."""
    assert "".join(pieces_of(BYTE_LEVEL, token_ids)) == BYTE_LEVEL.decode(token_ids)


@settings(deadline=None, max_examples=300)
@given(token_ids=st.lists(st.integers(0, BYTE_FALLBACK.get_vocab_size() - 1), max_size=40))
def test_any_ids_with_fallback(token_ids: list[int]) -> None:
    """Whatever broken bytes came before, a word that follows is given whole, and given once."""
    word = id_of("▁capital")
    pieces = pieces_of(BYTE_FALLBACK, [*token_ids, word])
    assert "".join(pieces).endswith("capital")
    assert "".join(pieces).count("capital") == [*token_ids, word].count(word)


@TOKENIZERS
def test_no_half_character(tokenizer: Tokenizer) -> None:
    """A character of four bytes comes whole with its last token."""
    token_ids = tokenizer.encode("a\N{GRINNING FACE}b").ids
    pieces = pieces_of(tokenizer, token_ids)
    assert "\N{GRINNING FACE}" in pieces
    assert not any("\ufffd" in piece for piece in pieces)


def test_output_that_ends_within_a_character() -> None:
    """A character cut off by the length limit ends as the replacement character, once."""
    token_ids = BYTE_LEVEL.encode("a\N{GRINNING FACE}").ids[:-1]
    assert "".join(pieces_of(BYTE_LEVEL, token_ids)) == "a\ufffd"


def test_space_between_prompt_and_output() -> None:
    """An output that goes on from a prompt keeps its first space; one that stands alone has none."""
    the, capital = (id_of(piece) for piece in ("▁the", "▁capital"))
    assert "".join(pieces_of(BYTE_FALLBACK, [capital], context=[the])) == " capital"
    assert "".join(pieces_of(BYTE_FALLBACK, [capital])) == "capital"


def test_context_that_ends_within_a_character() -> None:
    """A prompt that ends within a character is not repeated in the output."""
    context = BYTE_LEVEL.encode("Paris \N{GRINNING FACE}").ids[:-1]
    assert "".join(pieces_of(BYTE_LEVEL, BYTE_LEVEL.encode("x").ids, context=context)) == "x"


def test_recovery_gives_each_later_character() -> None:
    """After a byte that fits nowhere, the text that follows is complete."""
    ids = [id_of(piece) for piece in ("<0x61>", "<0xFF>", "b", "▁the", "<0x63>", "s")]
    text = "".join(pieces_of(BYTE_FALLBACK, ids))
    assert text.startswith("a")
    assert text.endswith("b thecs")
