"""Emulated tokens depend on everything that real ones do, and on nothing else."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeweave.emulated.facts import VOCAB_SIZE
from edgeweave.emulated.mixing import MASK, Words, mix, mix_words, place, places
from edgeweave.emulated.reference import reference_tokens
from edgeweave.interleave.nouns import Row, Sampling, Segment
from edgeweave.interleave.split import Split
from fakes.emulated import NUM_LAYERS, HandMesh, Tamper

PROMPT = [5, 9, 2, 9, 9, 131_071, 0, 4]
NUM_TOKENS = 6
TOKEN_IDS = st.integers(0, VOCAB_SIZE - 1)
SPLITS = [Split(h, t) for h in range(1, NUM_LAYERS) for t in range(1, NUM_LAYERS - h)]


def reference(prompt: Sequence[int], num_tokens: int = NUM_TOKENS) -> list[int]:
    return reference_tokens(prompt, num_tokens, num_layers=NUM_LAYERS)


def cuts(start: int, stop: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Draw the half-open ranges that [start, stop) is cut into."""
    inner = st.sets(st.integers(start + 1, stop - 1)) if stop - start > 1 else st.just(set[int]())
    return inner.map(lambda points: sorted({start, stop, *points})).map(lambda ends: list(zip(ends, ends[1:])))  # noqa: B905, RUF007 (neighbours)


@given(st.integers(0, MASK))
def test_numbers_and_rows_are_mixed_alike(number: int) -> None:
    words = np.array([number], dtype=np.uint64)
    assert mix_words(words).tolist() == [mix(number)]
    assert places(words).tolist() == [place(number)]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_split_chunks_segments_and_neighbours_do_not_matter(data: st.DataObject) -> None:
    """Two prompts, cut in any way under any split, side by side in every chunk, give what each gives alone."""
    split = data.draw(st.sampled_from([None, *SPLITS]))
    prompts = data.draw(st.lists(st.lists(TOKEN_IDS, min_size=3, max_size=12), min_size=2, max_size=2))
    mesh, outputs = HandMesh(split), [[0], [0]]
    chunks = [data.draw(cuts(0, len(prompt))) for prompt in prompts]
    for number in range(max(map(len, chunks))):
        parts = [(i, *chunks[i][number]) for i in range(2) if number < len(chunks[i])]
        segments = (
            [Segment(*cut) for cut in data.draw(cuts(mesh.edge.body.start, mesh.edge.body.stop))] if split else []
        )
        rows = [Row(i + 1, start, stop) for i, start, stop in parts]
        ids = [token for i, start, stop in parts for token in prompts[i][start:stop]]
        for (i, _, stop), token in zip(parts, mesh.run(rows, ids, segments=segments), strict=True):
            if stop == len(prompts[i]):
                outputs[i] = mesh.decode(i + 1, token, start=stop, num_tokens=NUM_TOKENS)
    assert outputs == [reference(prompt) for prompt in prompts]


@given(st.lists(TOKEN_IDS, min_size=1, max_size=9), st.integers(0, 8), TOKEN_IDS)
def test_every_token_of_a_prompt_counts(prompt: list[int], index: int, other: int) -> None:
    changed = [*prompt]
    changed[index % len(prompt)] = other
    assert (reference(prompt) == reference(changed)) == (prompt == changed)


def swapped(hidden: Words) -> Words:
    hidden[[2, 5]] = hidden[[5, 2]]
    return hidden


def repeated(hidden: Words) -> Words:
    hidden[3] = hidden[2]
    return hidden


def lost(hidden: Words) -> Words:
    hidden[1] = 0
    return hidden


def flipped(word: int) -> Tamper:
    def flip(hidden: Words) -> Words:
        hidden[0, word] ^= np.uint64(1 << 40)
        return hidden

    return flip


@pytest.mark.parametrize("tamper", [swapped, repeated, lost, flipped(0), flipped(1)])
def test_a_row_that_is_not_what_left_changes_all_tokens(tamper: Tamper) -> None:
    """Also rows in the middle of a prompt, whose own tokens nobody draws."""
    mesh = HandMesh()
    (token,) = mesh.run([Row(1, 0, 8)], PROMPT, up=tamper)
    tokens = mesh.decode(1, token, start=8, num_tokens=NUM_TOKENS)
    assert all(ours != right for ours, right in zip(tokens, reference(PROMPT), strict=True))


BODY = Segment(1, 7)
SEGMENTS = {
    "order": [Segment(4, 7), Segment(1, 4)],
    "left out": [Segment(1, 3), Segment(5, 7)],
    "twice": [Segment(1, 4), Segment(1, 4), Segment(4, 7)],
    "overlap": [Segment(1, 4), Segment(3, 7)],
    "too early": [Segment(1, 6)],
}


@pytest.mark.parametrize("segments", SEGMENTS.values(), ids=SEGMENTS)
def test_segments_run_once_and_in_order(segments: list[Segment]) -> None:
    assert HandMesh().run([Row(1, 0, 8)], PROMPT, segments=segments) != reference(PROMPT, 1)
    assert HandMesh().run([Row(1, 0, 8)], PROMPT, segments=[Segment(1, 4), Segment(4, 7)]) == reference(PROMPT, 1)


@pytest.mark.parametrize("row", [Row(1, 1, 9), Row(2, 0, 8)])
def test_the_cloud_keeps_rows_at_their_positions_in_their_sequences(row: Row) -> None:
    """A position that is off shows at once, another sequence as soon as the right one is read."""
    mesh = HandMesh()
    (token,) = mesh.run([Row(1, 0, 8)], PROMPT, cloud_rows=[row])
    assert mesh.decode(1, token, start=8, num_tokens=2) != reference(PROMPT, 2)


def run_twice(mesh: HandMesh) -> None:
    mesh.run([Row(1, 4, 6)], PROMPT[4:6])


def leave_out(_mesh: HandMesh) -> None:
    """Run nothing."""


@pytest.mark.parametrize(("again", "is_right"), [(run_twice, False), (leave_out, True)])
def test_a_chunk_that_runs_twice_is_in_the_kv_twice(again: Callable[[HandMesh], None], is_right: bool) -> None:  # noqa: FBT001
    mesh = HandMesh()
    mesh.run([Row(1, 0, 6)], PROMPT[:6])
    again(mesh)
    assert (mesh.run([Row(1, 6, 8)], PROMPT[6:]) == reference(PROMPT, 1)) is is_right


def test_kv_that_was_freed_is_gone() -> None:
    """A sequence that begins after another one was freed does not inherit from it."""
    mesh = HandMesh()
    mesh.run([Row(1, 0, 8)], PROMPT)
    for part in (mesh.edge, mesh.cloud):
        part.free([1, 77])
    assert mesh.run([Row(2, 0, 8)], PROMPT) == reference(PROMPT, 1)


def test_with_temperature_seed_and_index_count_and_nothing_else() -> None:
    """As in the real sampler: the same request draws the same token in any batch."""
    mesh = HandMesh()
    numbers = np.array([7, 7, 7, 7, 8], dtype=np.uint64)
    warm = [Sampling(1.0, seed=seed) for seed in (1, 1, 1, 2, 1)]
    first, same, later, other_seed, other_number = mesh.edge.sample(numbers, warm, [0, 0, 1, 0, 0])
    assert first == same
    assert len({first, later, other_seed, other_number}) == 4


def test_a_prompt_has_tokens() -> None:
    with pytest.raises(ValueError, match="at least one"):
        reference([])
