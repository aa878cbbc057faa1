"""The part of the protobuf encoding that is needed to find a message's last field without parsing it.

Knows tags, lengths and how to skip a field. Does not know any message; what it cannot follow it leaves to the
generated parser.
"""

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


def length_prefix(field: int, num_bytes: int) -> bytes:
    """Return tag and length of a bytes field of `num_bytes`."""
    return _varint(field << 3 | _LENGTH_DELIMITED) + _varint(num_bytes)


def last_bytes_field(message: bytes, field: int) -> tuple[int, int] | None:
    """Find bytes field `field` at the end of `message`.

    Returns:
        Where its tag and where its content begin; None if the message cannot be followed to it, or goes on after it.
    """
    position = 0
    try:
        while position < len(message):
            tag, start = _read_varint(message, position)
            if tag == field << 3 | _LENGTH_DELIMITED:
                num_bytes, content = _read_varint(message, start)
                return (position, content) if content + num_bytes == len(message) else None
            position = _skip(message, start, wire_type=tag & 7)
    except (IndexError, ValueError):
        pass
    return None


def _skip(message: bytes, start: int, *, wire_type: int) -> int:
    """Return where the field ends whose tag ended at `start`."""
    if wire_type == _VARINT:
        return _read_varint(message, start)[1]
    if wire_type == _LENGTH_DELIMITED:
        num_bytes, content = _read_varint(message, start)
        return content + num_bytes
    if wire_type == _FIXED32:
        return start + 4
    if wire_type == _FIXED64:
        return start + 8
    raise ValueError(f"wire type {wire_type} is a group or unknown")


def _read_varint(message: bytes, start: int) -> tuple[int, int]:
    """Return the number at `start` and where it ends; IndexError if cut short, ValueError if too long."""
    number = 0
    for offset in range(_MAX_VARINT_BYTES):
        byte = message[start + offset]
        number |= (byte & 0x7F) << 7 * offset
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return number, start + offset + 1
    raise ValueError("a varint has at most ten bytes")


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 0x80:  # noqa: PLR2004 - the continuation bit
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
