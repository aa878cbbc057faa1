"""A model in two parts says what the whole model says: every architecture, cut, chunk size and mix of rows."""

from collections.abc import Sequence
from itertools import product

import pytest

from edgeweave.interleave.nouns import KvCapacity, Sampling
from edgeweave.interleave.split import Split
from exact.tally import Tally
from models.architectures import ARCHITECTURES
from models.local_mesh import LocalMesh, Mix
from models.tiny import Reference, references

TIE = 1e-5
WHOLE_PROMPT = 1_000
# Five requests hardly fit, so sequences must move.
KV = KvCapacity(block_tokens=4, num_blocks=28)

SPLITS = [None, Split(1, 1), Split(3, 1), Split(1, 3), Split(3, 2)]
CHUNKS = [1, 3, 5, 16, WHOLE_PROMPT]
MIXES = [
    Mix(max_live=1, depth=1, segment_layers=6),
    Mix(max_live=5, depth=1, segment_layers=1),
    Mix(max_live=2, depth=1, segment_layers=2),
    Mix(max_live=3, depth=2, segment_layers=1),
]
# Under these splits every linear layer is packed, however small, under the others none.
PACKED = {None, Split(3, 1), Split(3, 2)}
# Under these, transformers' own layers run on torch's own products: what is fast has to say what this says.
PLAIN = {Split(1, 3)}
UNPACKED = 1 << 40
"""No layer has so many weights."""
Case = tuple[str, Split | None, int, Mix]

ALL: list[Case] = list(product(ARCHITECTURES, SPLITS, CHUNKS, MIXES))
PAIRS: list[Case] = [
    (name, split, CHUNKS[(n + i) % len(CHUNKS)], MIXES[(n + i) % len(MIXES)])
    for n, name in enumerate(ARCHITECTURES)
    for i, split in enumerate(SPLITS)
]


def _name(value: object) -> str:
    if isinstance(value, Mix):
        return f"{value.max_live}live{value.depth}deep"
    return "one-place" if value is None else str(value)


class Meshes:
    """The mesh that was asked for last; cases come ordered by model and split."""

    def __init__(self) -> None:
        self._key: tuple[str, Split | None] | None = None
        self._mesh: LocalMesh | None = None

    def get(self, architecture: str, split: Split | None) -> LocalMesh:
        if self._key != (architecture, split) or self._mesh is None:
            self._key = (architecture, split)
            pack_from = 1 if split in PACKED else UNPACKED
            self._mesh = LocalMesh.load(
                architecture, split, kv=KV, pack_from=pack_from, runs_directly=split not in PLAIN
            )
        return self._mesh


@pytest.fixture(scope="module")
def meshes() -> Meshes:
    return Meshes()


def _check_exact(mesh: LocalMesh, case: Case, tally: Tally) -> None:
    architecture, _, chunk_tokens, mix = case
    expected = references(architecture)
    outputs = mesh.answer(
        [reference.prompt for reference in expected],
        num_output_tokens=len(expected[0].output),
        chunk_tokens=chunk_tokens,
        mix=mix,
    )
    for output, reference in zip(outputs, expected, strict=True):
        _compare(output, reference, tally)
    for side in (mesh.edge, mesh.cloud):
        assert side is None or side.kv_blocks_used == 0


def _compare(output: Sequence[int], reference: Reference, tally: Tally) -> None:
    """Compare up to the first difference, which only a tie of the reference excuses."""
    tally.num_tokens += len(output)
    for index, (token_id, expected) in enumerate(zip(output, reference.output, strict=True)):
        if token_id != expected:
            assert reference.margins[index] < TIE, f"token {index}: {output} is not {reference.output}"
            tally.num_excused += 1
            return


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: "-".join(map(_name, case)))
def test_parts_say_what_the_whole_model_says(case: Case, meshes: Meshes, tally: Tally) -> None:
    """Greedy tokens equal those of `transformers.generate`; each pair of values of the four dimensions is here."""
    _check_exact(meshes.get(*case[:2]), case, tally)


@pytest.mark.exact
@pytest.mark.parametrize("case", ALL, ids=lambda case: "-".join(map(_name, case)))
def test_every_combination(case: Case, meshes: Meshes, tally: Tally) -> None:
    """The same for the whole product."""
    _check_exact(meshes.get(*case[:2]), case, tally)


def test_the_selection_holds_every_pair() -> None:
    """The thinned cases hold each pair of values of each two dimensions."""
    for one, other in product(range(4), repeat=2):
        assert {(case[one], case[other]) for case in PAIRS} == {(case[one], case[other]) for case in ALL}


def test_ties_are_rare(tally: Tally) -> None:
    """At most 1 token in 10,000 leaves the reference at a tie, over all cases that ran before."""
    assert tally.num_excused * 10_000 <= max(tally.num_tokens, 10_000)


def test_memory_was_so_tight_that_sequences_moved(meshes: Meshes, tally: Tally) -> None:
    """The cases above prove moved keys and values too: five requests side by side force moves on both sides."""
    mesh = meshes.get("llama", Split(1, 1))
    _check_exact(mesh, ("llama", Split(1, 1), 3, MIXES[1]), tally)
    assert mesh.cloud
    assert mesh.edge.num_moves > 0
    assert mesh.cloud.num_moves > 0


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "deepseek_v3"])
def test_seeded_samples_repeat_under_every_mix(architecture: str, meshes: Meshes) -> None:
    """A seed draws the same tokens whatever the cut, the chunks and the company."""
    prompts = [reference.prompt for reference in references(architecture)]
    samplings = [Sampling(temperature=0.9, top_k=40, top_p=0.9, seed=seed) for seed in range(len(prompts))]
    outputs = {
        (str(split), chunk_tokens, mix): mesh.answer(
            prompts, num_output_tokens=6, chunk_tokens=chunk_tokens, mix=mix, samplings=samplings
        )
        for split in (None, Split(1, 1))
        for mesh in [meshes.get(architecture, split)]
        for chunk_tokens, mix in zip((1, 5, WHOLE_PROMPT), (MIXES[1], MIXES[3], MIXES[0]), strict=True)
    }
    first, *others = outputs.values()
    assert all(other == first for other in others)
    assert len({tuple(output) for output in first}) == len(first)
