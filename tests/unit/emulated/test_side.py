"""What emulated parts are beside their digests: bytes, KV accounts, fingerprints, settings."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ByteSize

from edgeweave.emulated import EmulatedCloud, EmulatedEdge, emulated_cloud, emulated_edge
from edgeweave.emulated.facts import EmulatedFacts
from edgeweave.errors import InvalidRequestError, InvalidSettingsError, SplitError
from edgeweave.interleave.nouns import KvCapacity, Row, Segment
from edgeweave.interleave.split import Split
from edgeweave.kv.blocks import OutOfBlocksError
from edgeweave.settings import CloudSettings, EdgeSettings
from edgeweave.sim.profile import NPU
from fakes.emulated import SMALL, HandMesh

ROWS = [Row(1, 0, 2), Row(2, 0, 1)]


def test_hidden_states_have_the_size_of_the_profile() -> None:
    """A row is as long on the lane as a real one, and comes back as it left."""
    mesh = HandMesh()
    hidden = mesh.edge.run_head(ROWS, [1, 2, 3])
    payload = mesh.edge.payload_of(hidden)
    assert len(payload) == 3 * SMALL.token_bytes
    assert (mesh.cloud.hidden_from(bytes(payload), 3) == hidden).all()
    with pytest.raises(ValueError, match="96 bytes are not 2 hidden states of 32 bytes"):
        mesh.cloud.hidden_from(payload, 2)


def test_rows_that_are_skipped_are_zeros() -> None:
    mesh = HandMesh()
    hidden = mesh.edge.run_head(ROWS, [1, 2, 3])
    computed = mesh.edge.live_of(hidden, ROWS, (False, True))
    assert (computed == hidden[2:]).all()
    assert mesh.edge.spread(computed, ROWS, (False, True)).any(axis=1).tolist() == [False, False, True]
    assert mesh.edge.live_of(hidden, ROWS, (True, True)) is hidden
    assert mesh.edge.spread(hidden, ROWS, (True, True)) is hidden


def test_blocks_are_counted_as_in_a_real_part() -> None:
    """A unit takes the blocks of its rows, one that finds too few fails, and what is freed is free."""
    mesh = HandMesh(kv=KvCapacity(block_tokens=4, num_blocks=3))
    mesh.edge.run_head([Row(1, 0, 5)], [1] * 5)
    assert mesh.edge.kv_blocks_used == 2
    with pytest.raises(OutOfBlocksError, match="sequence 2 needs 2 more KV blocks and 1 of 3 are free"):
        mesh.edge.run_head([Row(2, 0, 5)], [1] * 5)
    mesh.edge.free([1])
    mesh.edge.run_head([Row(2, 0, 12)], [1] * 12)
    mesh.edge.free_all()
    assert mesh.edge.kv_blocks_used == 0


def test_more_sequences_than_there_were_places() -> None:
    """The sums of many sequences at once grow, and those that are there stay."""
    mesh = HandMesh()
    rows = [Row(sequence, 0, 1) for sequence in range(150)]
    first = [token for row in rows for token in mesh.run([row], [row.sequence])]
    assert HandMesh().run(rows, list(range(150))) == first


def test_the_cloud_runs_its_body_only() -> None:
    mesh = HandMesh()
    with pytest.raises(ValueError, match="not part of the body"):
        mesh.cloud.run_segment(ROWS, mesh.edge.zeros(3), Segment(0, 2))


def test_other_numbers_are_another_model() -> None:
    """Both sides have to have the same profile to the last number, and the same split."""
    ours = EmulatedFacts(SMALL, Split(1, 1)).fingerprint
    assert EmulatedFacts(replace(SMALL, unit_us=101), Split(1, 1)).fingerprint.model != ours.model
    assert EmulatedFacts(replace(SMALL, name="other"), Split(1, 1)).fingerprint.model != ours.model
    assert EmulatedFacts(SMALL, Split(2, 1)).fingerprint == replace(ours, head_layers=2)


@pytest.mark.parametrize("token_bytes", [8, 30])
def test_a_row_without_room_for_a_digest_is_refused(token_bytes: int) -> None:
    with pytest.raises(InvalidSettingsError, match=rf"small: token_bytes {token_bytes} has to be a multiple of 8"):
        EmulatedFacts(replace(SMALL, token_bytes=token_bytes), Split(1, 1))


def test_settings_make_parts() -> None:
    """The profile says how it is cut, settings may say otherwise; KV is ample unless memory is given."""
    edge, cloud = emulated_edge(EdgeSettings(emulate="npu")), emulated_cloud(CloudSettings(emulate="npu"))
    assert isinstance(edge, EmulatedEdge)
    assert isinstance(cloud, EmulatedCloud)
    assert edge.body == cloud.body == Segment(1, 63)
    assert edge.fingerprint == cloud.fingerprint
    assert edge.token_bytes == cloud.token_bytes == NPU.token_bytes
    assert edge.kv == cloud.kv == KvCapacity(16, 1 << 20)
    other = emulated_edge(EdgeSettings(emulate="npu", split="2:3"))
    assert (other.body, other.facts.profile.head_layers, other.facts.profile.tail_layers) == (Segment(2, 61), 2, 3)
    whole = emulated_edge(EdgeSettings(emulate="npu", split="none"))
    assert (whole.body.num_layers, whole.zeros(1).nbytes) == (0, 16)
    small = emulated_cloud(CloudSettings(emulate="npu", kv_bytes=ByteSize(1 << 30), block_tokens=8))
    assert small.kv == KvCapacity(8, (1 << 30) // (8 * 62 * 4096))


def test_what_cannot_be_emulated_is_said() -> None:
    with pytest.raises(InvalidRequestError, match="profile 'tpu' is neither a file nor one of npu"):
        emulated_edge(EdgeSettings(emulate="tpu"))
    with pytest.raises(SplitError, match="no layer of a model of 64"):
        emulated_cloud(CloudSettings(emulate="npu", split="32:32"))
    with pytest.raises(InvalidSettingsError, match="1000 bytes hold no KV block"):
        emulated_cloud(CloudSettings(emulate="npu", kv_bytes=ByteSize(1000)))
    with pytest.raises(InvalidSettingsError, match="names no profile"):
        emulated_edge(EdgeSettings(model=Path("m")))
