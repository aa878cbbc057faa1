"""Every way in which token ids or text might lie in bytes."""

from collections.abc import Iterator, Sequence

from edgeweave.v1 import scheduler_pb2 as pb

_WIDTHS = (1, 2, 4, 8)
_TAG_AND_LENGTH_BYTES = 2


def spellings_of_tokens(token_ids: Sequence[int]) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of `token_ids` side by side, in each width that holds them, and how they are spelled."""
    for width in _WIDTHS:
        if max(token_ids) < 1 << 8 * width:
            yield f"uint{8 * width} little", b"".join(token_id.to_bytes(width, "little") for token_id in token_ids)
            yield f"uint{8 * width} big", b"".join(token_id.to_bytes(width, "big") for token_id in token_ids)
    yield "varint", pb.GenerateRequest(prompt_token_ids=token_ids).SerializeToString()[_TAG_AND_LENGTH_BYTES:]


def spellings_of_text(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of `text`, and how it is spelled."""
    for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        yield encoding, text.encode(encoding)
