"""Reading fields that a peer may have left out or filled with what this version does not know.

Knows how a missing kind and an unknown enum number are told: `ProtocolError` with message and field.
Does not know any particular message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from edgeweave.errors import ProtocolError

EnumT = TypeVar("EnumT", bound=IntEnum)
NounT = TypeVar("NounT")
MessageT = TypeVar("MessageT", bound=Message)


def enum_field(message: Message, field: str, *, kind: type[EnumT]) -> EnumT:
    """Return the enum value of `field`; ProtocolError if it is unspecified or not known here."""
    number = getattr(message, field)
    try:
        return kind(number)
    except ValueError:
        raise _unusable(message, field, f"holds {number}, which is no {kind.__name__}") from None


def optional_enum_field(message: Message, field: str, *, kind: type[EnumT]) -> EnumT | None:
    """Return the enum value of `field`, None if it is unspecified; ProtocolError if it is not known here."""
    return enum_field(message, field, kind=kind) if getattr(message, field) else None


def chosen_field(message: Message, oneof: str) -> str:
    """Return the name of the field that is set in `oneof`; ProtocolError if none is."""
    # The stubs type the argument by the literal names of one message; this reads any message.
    field: str | None = message.WhichOneof(oneof)
    if field is None:
        raise _unusable(message, oneof, "is not set")
    return field


def required_field(message: Message, field: str) -> Any:
    """Return the message in `field`; ProtocolError if it is absent."""
    if not message.HasField(field):
        raise _unusable(message, field, "is not set")
    return getattr(message, field)


@dataclass(frozen=True, slots=True)
class Kind:
    """One field of a stream's `oneof kind`, with the noun that it carries and both directions."""

    field: str
    noun: type
    encode: Callable[[Any], Message]
    decode: Callable[[Any], Any]


class Kinds(Generic[MessageT, NounT]):
    """All kinds of one stream message: turns a noun into the message and back."""

    def __init__(self, message: type[MessageT], *kinds: Kind) -> None:
        self._message = message
        self._by_noun = {kind.noun: kind for kind in kinds}
        self._by_field = {kind.field: kind for kind in kinds}

    def encode(self, noun: NounT) -> MessageT:
        """Return the stream message that carries `noun`."""
        kind = self._by_noun[type(noun)]
        message = self._message()
        getattr(message, kind.field).CopyFrom(kind.encode(noun))
        return message

    def decode(self, message: MessageT) -> NounT:
        """Return the noun in `message`; ProtocolError if there is none, or it cannot be read."""
        kind = self._by_field[chosen_field(message, "kind")]
        noun: NounT = kind.decode(getattr(message, kind.field))
        return noun


def _unusable(message: Message, field: str, complaint: str) -> ProtocolError:
    name = message.DESCRIPTOR.name
    return ProtocolError(f"{name}.{field} {complaint}; do both sides run the same version of edgeweave?")
