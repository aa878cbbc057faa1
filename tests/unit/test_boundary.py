"""The cloud can receive what docs/boundary.md lists, and nothing by which text or a token id could travel."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from edgeweave.v1 import cloud_pb2

PAGE = (Path(__file__).parents[2] / "docs" / "boundary.md").read_text()
FIELD_ROW = re.compile(r"^\| `(\w+\.\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)

TELLING_NAME = re.compile(
    "token|text|prompt|content|message|word|char|string|logit|prob|vocab|name|client|request|user|trace|baggage"
)
# Bytes can hold anything, and a list of numbers can hold token ids: each such field is named here as well.
REVIEWED_BYTES = {"AttachCloud.site", "CarryFramesRequest.payload"}
REVIEWED_LISTS = {
    "ReleaseSequences.sequences",
    "CarryFramesRequest.sequences",
    "CarryFramesRequest.starts",
    "CarryFramesRequest.counts",
}


def received_fields(service: str) -> list[FieldDescriptor]:
    """Return each field of every message that a service receives, nested ones too."""
    seen: set[str] = set()
    requests = [method.input_type for method in cloud_pb2.DESCRIPTOR.services_by_name[service].methods]
    return [field for request in requests for field in nested_fields(request, seen)]


def nested_fields(message: Descriptor, seen: set[str]) -> Iterator[FieldDescriptor]:
    """Yield each field of `message` and of the messages in it; a message that was seen yields nothing."""
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    for field in message.fields:
        yield field
        if field.message_type is not None:
            yield from nested_fields(field.message_type, seen)


def name_of(field: FieldDescriptor) -> str:
    """Return a field as Message.field."""
    return field.full_name.removeprefix("edgeweave.v1.")


def kind_of(field: FieldDescriptor) -> str:
    """Return the type of a field as a contract spells it."""
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()  # type: ignore[arg-type]  # an int here
    named = [kind.name for kind in (field.message_type, field.enum_type) if kind is not None]
    return ("repeated " if field.is_repeated else "") + (named or [scalar])[0]


def doubts_about(field: FieldDescriptor) -> list[str]:
    """Return each reason why text or token ids could travel in a field."""
    name, nested = name_of(field), field.message_type
    is_list = field.is_repeated and nested is None
    reasons = {
        "a string carries text": field.type == FieldDescriptor.TYPE_STRING,
        "bytes carry anything": field.type == FieldDescriptor.TYPE_BYTES and name not in REVIEWED_BYTES,
        "a list of numbers carries token ids": is_list and name not in REVIEWED_LISTS,
        "another package decides what it holds": nested is not None and nested.file.package != "edgeweave.v1",
        "its name speaks of content": TELLING_NAME.search(field.name) is not None,
    }
    return [reason for reason, holds in reasons.items() if holds]


def test_the_page_lists_each_field_that_the_cloud_can_receive_and_no_other() -> None:
    """A field arrives in the contract together with its row on the page."""
    listed = {name: kind for name, kind, _, _ in FIELD_ROW.findall(PAGE)}
    assert listed == {name_of(field): kind_of(field) for field in received_fields("CloudService")}


def test_every_row_of_the_page_has_a_meaning_and_what_it_tells() -> None:
    """A row with an empty cell explains nothing; a second row for a field contradicts the first."""
    rows = FIELD_ROW.findall(PAGE)
    assert all(meaning.strip() and tells.strip() for _, _, meaning, tells in rows)
    assert len({name for name, *_ in rows}) == len(rows)


@pytest.mark.parametrize("field", received_fields("CloudService"), ids=name_of)
def test_no_field_could_carry_text_or_token_ids(field: FieldDescriptor) -> None:
    """Neither by its type nor by its name."""
    assert doubts_about(field) == []


@pytest.mark.parametrize(
    "kind",
    [
        FieldDescriptorProto(name="note", type=FieldDescriptorProto.TYPE_STRING),
        FieldDescriptorProto(name="extra", type=FieldDescriptorProto.TYPE_BYTES),
        FieldDescriptorProto(
            name="values", type=FieldDescriptorProto.TYPE_UINT32, label=FieldDescriptorProto.LABEL_REPEATED
        ),
        FieldDescriptorProto(name="token_id", type=FieldDescriptorProto.TYPE_UINT32),
    ],
    ids=lambda kind: kind.name,
)
def test_the_walk_finds_a_forbidden_field_one_message_down(kind: FieldDescriptorProto) -> None:
    """A check that passes everything would prove nothing."""
    doubts = {name_of(field): doubts_about(field) for field in nested_fields(outer_around(kind), set())}
    assert doubts["Outer.inner"] == []
    assert len(doubts[f"Inner.{kind.name}"]) == 1


def outer_around(field: FieldDescriptorProto) -> Descriptor:
    """Return a message Outer with a message Inner in it, and `field` in that."""
    inner = DescriptorProto(name="Inner", field=[field])
    inner.field[0].number = 1
    link = FieldDescriptorProto(name="inner", number=1, type=FieldDescriptorProto.TYPE_MESSAGE, type_name="Inner")
    outer = DescriptorProto(name="Outer", field=[link])
    made = FileDescriptorProto(name="made.proto", package="edgeweave.v1", syntax="proto3", message_type=[inner, outer])
    pool = DescriptorPool()
    pool.AddSerializedFile(made.SerializeToString())
    return pool.FindMessageTypeByName("edgeweave.v1.Outer")
