"""Reads what a gRPC client has sent over one connection: the headers and the messages of each call.

Knows as much of HTTP/2 as that needs, and nothing of what the messages mean.
"""

import struct
from dataclasses import dataclass, field
from enum import IntEnum

from hpack import Decoder

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEADER_BYTES = 9
_MESSAGE_HEADER_BYTES = 5
_PADDED = 0x8
_PRIORITY = 0x20
_END_HEADERS = 0x4


class _Kind(IntEnum):
    """Kinds of frames. A client sends no others."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


@dataclass
class Call:
    """One call of a client: its headers, in order, and its messages as they were serialized."""

    headers: list[tuple[str, str]] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Service and method."""
        return dict(self.headers)[":path"]


def calls_in(sent: bytes) -> list[Call]:
    """Return the calls in all that a client has sent over a connection; a message that is not whole is left out.

    Raises:
        ValueError: the bytes are no HTTP/2 of a client, or a message is compressed.
    """
    if not sent.startswith(_PREFACE):
        raise ValueError(f"no client of HTTP/2 begins with {sent[:24]!r}")
    calls: dict[int, Call] = {}
    streams: dict[int, bytearray] = {}
    block = bytearray()
    decoder = Decoder()
    for kind, flags, stream, content in _frames_in(sent):
        if kind is _Kind.DATA:
            streams.setdefault(stream, bytearray()).extend(_unpadded(content, flags))
        elif kind in (_Kind.HEADERS, _Kind.CONTINUATION):
            block += content if kind is _Kind.CONTINUATION else _unpadded(content, flags)
            if flags & _END_HEADERS:
                headers = [(_text(name), _text(value)) for name, value in decoder.decode(bytes(block))]
                calls.setdefault(stream, Call()).headers += headers
                block.clear()
    for stream, content_of_stream in streams.items():
        calls[stream].messages = _messages_in(bytes(content_of_stream))
    return list(calls.values())


def _frames_in(sent: bytes) -> list[tuple[_Kind, int, int, bytes]]:
    frames = []
    at = len(_PREFACE)
    while at + _FRAME_HEADER_BYTES <= len(sent):
        high, low, kind, flags, stream = struct.unpack_from(">BHBBI", sent, at)
        begin, at = at + _FRAME_HEADER_BYTES, at + _FRAME_HEADER_BYTES + (high << 16 | low)
        if at <= len(sent):
            frames.append((_Kind(kind), flags, stream, sent[begin:at]))
    return frames


def _unpadded(content: bytes, flags: int) -> bytes:
    """Return `content` without its padding, and without the priority, whose flag only headers have."""
    padding = content[0] if flags & _PADDED else 0
    begin = (1 if flags & _PADDED else 0) + (5 if flags & _PRIORITY else 0)
    return content[begin : len(content) - padding]


def _messages_in(stream: bytes) -> list[bytes]:
    messages = []
    at = 0
    while at + _MESSAGE_HEADER_BYTES <= len(stream):
        is_compressed, size = struct.unpack_from(">BI", stream, at)
        if is_compressed:
            raise ValueError("a message is compressed")
        begin, at = at + _MESSAGE_HEADER_BYTES, at + _MESSAGE_HEADER_BYTES + size
        if at <= len(stream):
            messages.append(stream[begin:at])
    return messages


def _text(part: bytes | str) -> str:
    return part.decode("latin-1") if isinstance(part, bytes) else part
