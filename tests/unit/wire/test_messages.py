"""Every noun of the task streams survives the wire, and what cannot be read is told by message and field."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeweave.errors import ProtocolError
from edgeweave.interleave.nouns import (
    Attached,
    BubbleCause,
    DType,
    ErrorCode,
    Fingerprint,
    FinishReason,
    KvCapacity,
    OpenSequence,
    Rider,
    Row,
    Sampling,
    Segment,
    Stage,
    UnitFailed,
    UnitRan,
)
from edgeweave.v1 import cloud_pb2, common_pb2, edge_pb2
from edgeweave.wire.messages import (
    AttachCloud,
    AttachEdge,
    CloudReport,
    CloudTask,
    EdgeReport,
    EdgeTask,
    cloud_report_message,
    cloud_report_of,
    cloud_task_message,
    cloud_task_of,
    edge_report_message,
    edge_report_of,
    edge_task_message,
    edge_task_of,
    sampling_message,
    sampling_of,
)

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
FLOAT32 = st.floats(width=32, min_value=0, max_value=100)

ROWS = st.builds(
    lambda sequence, start, num_tokens: Row(sequence, start, start + num_tokens),
    U64,
    st.integers(0, 2**31),
    st.integers(1, 2**20),
)
SEGMENTS = st.builds(
    lambda start, num_layers: Segment(start, start + num_layers), st.integers(0, 500), st.integers(0, 500)
)
SAMPLINGS = st.builds(
    Sampling,
    temperature=FLOAT32,
    top_k=U32,
    top_p=st.floats(width=32, min_value=0, max_value=1, exclude_min=True),
    seed=U64,
)


def of_unit(noun: type, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Nouns of which exactly one of chunk and step is set."""
    return st.builds(
        lambda made, unit, is_chunk: replace(made, **{"chunk" if is_chunk else "step": unit}),
        st.builds(noun, chunk=st.none(), step=st.none(), **fields),
        U64,
        st.booleans(),
    )


RIDERS = st.builds(Rider, step=st.none() | U64, num_rows=U32, num_tokens=U32, ready_us=st.none() | U64)
U32_FIELDS = {"start": U32, "stop": U32, "num_rows": U32, "num_tokens": U32, "plan": U32, "num_skipped": U32}

st.register_type_strategy(int, U32)
st.register_type_strategy(Row, ROWS)
st.register_type_strategy(Segment, SEGMENTS)
st.register_type_strategy(Sampling, SAMPLINGS)
st.register_type_strategy(
    UnitRan,
    of_unit(
        UnitRan,
        begin_us=U64,
        end_us=U64,
        tail_ready=st.booleans(),
        decode_due_us=st.none() | U64,
        prefill_run_us=U64,
        decode_rows=U32,
        ready_us=st.none() | U64,
        next_step=st.none() | U64,
        tail_us=U64,
        sampling_us=U64,
        rider=st.none() | RIDERS,
        ride_layers=U32,
        step_layers=U32,
        **U32_FIELDS,
    ),
)
st.register_type_strategy(UnitFailed, of_unit(UnitFailed))
st.register_type_strategy(AttachEdge, st.builds(AttachEdge, session=U64, cloud_target=st.none() | st.text(min_size=1)))

STREAMS: dict[str, tuple[Any, Callable[[Any], Message], Callable[[Any], Any]]] = {
    "edge tasks": (EdgeTask, edge_task_message, edge_task_of),
    "edge reports": (EdgeReport, edge_report_message, edge_report_of),
    "cloud tasks": (CloudTask, cloud_task_message, cloud_task_of),
    "cloud reports": (CloudReport, cloud_report_message, cloud_report_of),
}
NOUNS = [
    pytest.param(noun, encode, decode, id=f"{stream}: {noun.__name__}")
    for stream, (union, encode, decode) in STREAMS.items()
    for noun in get_args(union)
]


@pytest.mark.parametrize(("noun", "encode", "decode"), NOUNS)
def test_each_noun_of_each_stream_comes_back_equal_from_its_bytes(
    noun: type, encode: Callable[[Any], Message], decode: Callable[[Any], Any]
) -> None:
    """Equal, and no field of the contract is one that the nouns never fill."""
    filled: set[str] = set()
    contract: set[str] = set()

    @settings(derandomize=True)
    @given(st.from_type(noun))
    def round_trip(sent: Any) -> None:
        message = encode(sent)
        received = type(message).FromString(message.SerializeToString())
        assert decode(received) == sent
        noun_message = getattr(message, str(message.WhichOneof("kind")))
        filled.update(filled_fields(noun_message))
        contract.update(contract_fields(noun_message.DESCRIPTOR))

    round_trip()
    assert filled == contract


def filled_fields(message: Message) -> Iterator[str]:
    """The full names of the fields that are set anywhere in `message`."""
    for field, value in message.ListFields():
        yield field.full_name
        if field.message_type:
            for part in value if field.is_repeated else [value]:
                yield from filled_fields(part)


def contract_fields(descriptor: Descriptor) -> Iterator[str]:
    """The full names of all fields of a message type and of those within it."""
    for field in descriptor.fields:
        yield field.full_name
        if field.message_type:
            yield from contract_fields(field.message_type)


@pytest.mark.parametrize("stream", STREAMS)
def test_every_kind_of_a_stream_has_a_noun(stream: str) -> None:
    """A field that is added to the contract without a noun is seen here."""
    union = STREAMS[stream][0]
    fields = _message_of(stream).DESCRIPTOR.oneofs_by_name["kind"].fields
    assert len(fields) == len(get_args(union))


def _message_of(stream: str) -> type[Message]:
    return {
        "edge tasks": edge_pb2.RunEdgeTasksRequest,
        "edge reports": edge_pb2.RunEdgeTasksResponse,
        "cloud tasks": cloud_pb2.RunCloudTasksRequest,
        "cloud reports": cloud_pb2.RunCloudTasksResponse,
    }[stream]


@pytest.mark.parametrize(
    ("noun", "contract"),
    [
        (Stage, common_pb2.Stage),
        (BubbleCause, common_pb2.BubbleCause),
        (ErrorCode, common_pb2.ErrorCode),
        (DType, common_pb2.DType),
        (FinishReason, edge_pb2.FinishReason),
    ],
)
def test_enums_have_the_numbers_and_names_of_the_contract(noun: Any, contract: Any) -> None:
    names = {name.removeprefix(contract.Name(0).removesuffix("UNSPECIFIED")): n for name, n in contract.items()}
    assert {member.name: int(member) for member in noun} == {k: n for k, n in names.items() if n}


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_message_without_a_kind_is_refused_by_name(stream: str) -> None:
    message = _message_of(stream)
    decode: Callable[[Any], Any] = STREAMS[stream][2]
    with pytest.raises(ProtocolError, match=rf"{message.DESCRIPTOR.name}\.kind is not set"):
        decode(message())


REFUSED = [
    (edge_pb2.RunEdgeTasksRequest, {"plan": {}}, edge_task_of, r"Plan\.kind holds 0"),
    (edge_pb2.RunEdgeTasksRequest, {"plan": {"kind": 77}}, edge_task_of, r"Plan\.kind holds 77"),
    (
        edge_pb2.RunEdgeTasksResponse,
        {"step": {"samples": [{"finish": 9}]}},
        edge_report_of,
        r"Sample\.finish holds 9",
    ),
    (edge_pb2.RunEdgeTasksResponse, {"failed": {"code": 1}}, edge_report_of, r"UnitFailed\.unit is not set"),
    (edge_pb2.RunEdgeTasksResponse, {"failed": {"chunk": 1}}, edge_report_of, r"UnitFailed\.code holds 0"),
    (edge_pb2.RunEdgeTasksResponse, {"failed": {"chunk": 1, "code": 1}}, edge_report_of, r"UnitFailed\.stage holds 0"),
    (
        cloud_pb2.RunCloudTasksResponse,
        {"timeline": {"ran": [{"chunk": 1}]}},
        cloud_report_of,
        r"UnitRan\.stage holds 0",
    ),
    (
        cloud_pb2.RunCloudTasksResponse,
        {"timeline": {"ran": [{"stage": 1}]}},
        cloud_report_of,
        r"UnitRan\.unit is not set",
    ),
    (
        cloud_pb2.RunCloudTasksResponse,
        {"timeline": {"bubbles": [{}]}},
        cloud_report_of,
        r"Bubble\.cause holds 0",
    ),
    (cloud_pb2.RunCloudTasksResponse, {"attached": {}}, cloud_report_of, r"Attached\.kv is not set"),
    (
        cloud_pb2.RunCloudTasksResponse,
        {"attached": {"kv": {}, "body": {}, "fingerprint": {}}},
        cloud_report_of,
        r"Fingerprint\.dtype holds 0",
    ),
    (
        cloud_pb2.RunCloudTasksRequest,
        {"chunk": {"rows": [{"sequence": 4, "start": 5, "stop": 5}]}},
        cloud_task_of,
        r"Row of sequence 4 is empty: \[5, 5\)",
    ),
    (
        cloud_pb2.RunCloudTasksRequest,
        {"chunk": {"segments": [{"start": 5, "stop": 4}]}},
        cloud_task_of,
        r"SegmentTask \[5, 4\) runs backwards",
    ),
]


@pytest.mark.parametrize(("message", "fields", "decode", "complaint"), REFUSED, ids=[case[-1] for case in REFUSED])
def test_what_cannot_be_read_is_told_by_message_and_field(
    message: Callable[..., Message], fields: dict[str, Any], decode: Callable[[Any], Any], complaint: str
) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        decode(message(**fields))


def test_sampling_values_are_those_that_the_edge_will_use() -> None:
    """Temperature and top_p travel as 32-bit floats, and a second trip changes nothing more."""
    once = sampling_of(sampling_message(Sampling(temperature=0.7, top_p=0.9, seed=5)))
    assert once.temperature == struct.unpack("<f", struct.pack("<f", 0.7))[0]
    assert sampling_of(sampling_message(once)) == once


def test_a_top_p_that_was_not_set_keeps_all_tokens() -> None:
    assert sampling_of(edge_pb2.Sampling(temperature=1.0)).top_p == 1.0


def test_a_sequence_without_sampling_is_greedy() -> None:
    message = edge_pb2.OpenSequence(sequence=1, token_ids=[3])
    task = edge_task_of(edge_pb2.RunEdgeTasksRequest(open=message))
    assert isinstance(task, OpenSequence)
    assert task.sampling == Sampling()


def test_an_edge_without_a_body_attaches_with_an_empty_segment() -> None:
    """Centralized: the edge holds all layers, dials nobody, and its body is empty."""
    attached = Attached(Fingerprint(b"m", b"w", 16, 0, DType.FLOAT32, 1), KvCapacity(16, 8), 0, 1, Segment(16, 16), 64)
    assert edge_report_of(edge_report_message(attached)) == attached
    attach = AttachEdge(session=1, cloud_target=None, max_chunk_tokens=1)
    assert edge_task_of(edge_task_message(attach)) == attach


def test_a_site_is_opaque_bytes() -> None:
    attach = AttachCloud(session=2**63, site=b"\xff\x00")
    assert cloud_task_of(cloud_task_message(attach)) == attach
