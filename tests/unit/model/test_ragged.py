"""Ragged attention against its formula, written out for one sequence at a time."""

import itertools
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from edgeweave.interleave.nouns import KvCapacity, Row
from edgeweave.model.attention import AttentionRule
from edgeweave.model.cache import KvCache, LayerKv

NUM_HEADS = 4


@dataclass(frozen=True)
class Shape:
    kv_heads: int
    key_dim: int = 8
    value_dim: int = 8


def _rule(*, window: int | None = None, softcap: float | None = None, sinks: Tensor | None = None) -> AttentionRule:
    return AttentionRule(scaling=0.4, sliding_window=window, softcap=softcap, sinks=sinks)


def _by_the_book(query: Tensor, key: Tensor, value: Tensor, *, rule: AttentionRule) -> Tensor:
    """Attend within one whole sequence: [heads, tokens, dim] to [tokens, heads, value dim]."""
    group = NUM_HEADS // len(key)
    key, value = key.repeat_interleave(group, 0), value.repeat_interleave(group, 0)
    scores = query @ key.transpose(1, 2) * rule["scaling"]
    if rule["softcap"] is not None:
        scores = rule["softcap"] * torch.tanh(scores / rule["softcap"])
    age = torch.arange(len(query[0])).unsqueeze(1) - torch.arange(len(query[0]))
    scores = scores.masked_fill((age < 0) | (age >= (rule["sliding_window"] or 1_000)), float("-inf"))
    if rule["sinks"] is not None:
        scores = torch.cat([scores, rule["sinks"].view(-1, 1, 1).expand(-1, scores.shape[1], 1)], -1)
    return (scores.softmax(-1)[..., : len(query[0])] @ value).transpose(0, 1)


class Sequences:
    """Whole sequences of random queries, keys and values, and a cache that sees them row by row."""

    def __init__(self, lengths: list[int], shape: Shape, *, num_blocks: int = 32, on_one_core: bool = False) -> None:
        generator = torch.Generator().manual_seed(0)
        self.cache = KvCache(
            KvCapacity(4, num_blocks), device=torch.device("cpu"), dtype=torch.float32, on_one_core=on_one_core
        )
        self.layer: LayerKv = self.cache.add_layer(
            kv_heads=shape.kv_heads, key_dim=shape.key_dim, value_dim=shape.value_dim
        )
        dims = ((NUM_HEADS, shape.key_dim), (shape.kv_heads, shape.key_dim), (shape.kv_heads, shape.value_dim))
        self.tensors = [
            [torch.randn(heads, length, dim, generator=generator) for heads, dim in dims] for length in lengths
        ]

    def run(self, rows: list[Row], rule: AttentionRule) -> Tensor:
        self.cache.begin(rows)
        packed = [torch.cat([self.tensors[r.sequence][i][:, r.start : r.stop] for r in rows], 1) for i in range(3)]
        query, key, value = (tensor.unsqueeze(0) for tensor in packed)
        return self.layer.attend(query, key, value, rule)[0]

    def expected(self, rows: list[Row], rule: AttentionRule) -> Tensor:
        whole = {row.sequence: _by_the_book(*self.tensors[row.sequence], rule=rule) for row in rows}
        return torch.cat([whole[row.sequence][row.start : row.stop] for row in rows])


RULES = {
    "plain": _rule(),
    "window": _rule(window=5),
    "softcap": _rule(softcap=1.5),
    "sinks": _rule(sinks=torch.tensor([0.5, -1.0, 2.0, 0.0])),
    "all": _rule(window=5, softcap=1.5, sinks=torch.tensor([0.5, -1.0, 2.0, 0.0])),
}


@pytest.mark.parametrize("on_one_core", [True, False], ids=["one-core", "torch"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
@pytest.mark.parametrize("shape", [Shape(4), Shape(2), Shape(1), Shape(4, 12, 6), Shape(2, 6, 12)])
def test_rows_attend_to_their_own_sequence(shape: Shape, rule: AttentionRule, *, on_one_core: bool) -> None:
    """Chunks and single tokens of several sequences in one unit equal the formula over each whole sequence."""
    sequences = Sequences([17, 9, 3], shape, on_one_core=on_one_core)
    units = [
        [Row(0, 0, 6), Row(1, 0, 9)],
        [Row(2, 0, 1), Row(0, 6, 7)],
        [Row(0, 7, 17), Row(2, 1, 2)],
        [Row(2, 2, 3)],
    ]
    for rows in units:
        torch.testing.assert_close(sequences.run(rows, rule), sequences.expected(rows, rule))


def test_a_row_may_begin_below_the_length() -> None:
    """A row that goes back over tokens writes them anew and sees nothing beyond its own end."""
    sequences = Sequences([12], Shape(2))
    rule = _rule()
    sequences.run([Row(0, 0, 12)], rule)
    rows = [Row(0, 7, 9)]
    torch.testing.assert_close(sequences.run(rows, rule), sequences.expected(rows, rule))


def test_moved_keys_and_values_are_the_same() -> None:
    """Sequences that outgrow their places in turn still attend to all of their tokens."""
    lengths = [20, 16, 12]
    sequences = Sequences(lengths, Shape(2), num_blocks=12)
    for start in range(0, 20, 4):
        rows = [Row(number, start, start + 4) for number, length in enumerate(lengths) if start < length]
        torch.testing.assert_close(sequences.run(rows, _rule()), sequences.expected(rows, _rule()))
    assert sequences.cache.table.num_moves > 0
    assert sequences.cache.table.num_used == 12
    sequences.cache.free([0, 1, 2, 5])
    assert sequences.cache.table.num_used == 0


@pytest.mark.parametrize("on_one_core", [True, False], ids=["one-core", "torch"])
@pytest.mark.parametrize("window", [None, 5, 100])
def test_a_step_takes_rows_of_every_length(window: int | None, *, on_one_core: bool) -> None:
    """One row each, equal lengths and others, in any order, beside a chunk: each sees its own sequence and no more."""
    lengths = [1, 2, 3, 4, 5, 8, 8, 8, 13, 31]
    sequences = Sequences(lengths, Shape(2), on_one_core=on_one_core)
    rule = _rule(window=window)
    sequences.run([Row(number, 0, length - 1) for number, length in enumerate(lengths) if length > 1], rule)
    rows = [Row(number, length - 1, length) for number, length in enumerate(lengths)]
    for unit in (rows, rows[::-1], [*rows[3:6], Row(9, 20, 31), *rows[6:9], *rows[:3]]):
        torch.testing.assert_close(sequences.run(unit, rule), sequences.expected(unit, rule))


@pytest.mark.parametrize("on_one_core", [True, False], ids=["one-core", "torch"])
@pytest.mark.parametrize("window", [None, 5, 100, 300])
@pytest.mark.parametrize("shape", [Shape(2), Shape(2, 64, 64), Shape(1, 6, 12), Shape(4, 40, 80)])
def test_a_prompt_comes_in_chunks_of_any_length(shape: Shape, window: int | None, *, on_one_core: bool) -> None:
    """Short ones and long ones, beside those of another sequence: each token sees itself and those before it."""
    sequences = Sequences([601, 290], shape, num_blocks=240, on_one_core=on_one_core)
    rule = _rule(window=window)
    stops = [0, 16, 290, 293, 400, 601]
    for start, stop in itertools.pairwise(stops):
        rows = [
            Row(0, start, stop),
            *([Row(1, 0, 17)] if start == 0 else []),
            *([Row(1, 17, 290)] if start == 16 else []),
        ]
        expected = sequences.expected(rows, rule)
        torch.testing.assert_close(sequences.run(rows, rule), expected, rtol=1e-4, atol=1e-5)


def test_large_scores_leave_no_share_for_the_others() -> None:
    """The shares of one core reach from 1 to what a float32 does not hold any more, as torch's do."""
    outputs = []
    for on_one_core in (True, False):
        sequences = Sequences([9], Shape(2), on_one_core=on_one_core)
        sequences.tensors = [[300 * tensor for tensor in tensors] for tensors in sequences.tensors]
        sequences.run([Row(0, 0, 8)], _rule())
        outputs.append(sequences.run([Row(0, 8, 9)], _rule()))
    torch.testing.assert_close(*outputs)


def test_scores_that_grow_from_block_to_block_leave_the_right_share() -> None:
    """What a prompt's first keys gave is weighed anew when larger scores come."""
    sequences = Sequences([600], Shape(2), num_blocks=160, on_one_core=True)
    sequences.tensors[0][1] *= torch.linspace(0, 30, 600).unsqueeze(1)
    rows = [Row(0, 0, 600)]
    attended, expected = sequences.run(rows, _rule()), sequences.expected(rows, _rule())
    torch.testing.assert_close(attended, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("on_one_core", [True, False], ids=["one-core", "torch"])
def test_numbers_that_are_none_stay_with_their_sequence(*, on_one_core: bool) -> None:
    """A sequence with a key that is no number attends to nothing that is one; the others are as without it."""
    sequences = Sequences([6, 6, 6], Shape(2), on_one_core=on_one_core)
    sequences.tensors[1][1][:, 2] = float("nan")
    sequences.run([Row(number, 0, 5) for number in range(3)], _rule())
    rows = [Row(number, 5, 6) for number in range(3)]
    attended = sequences.run(rows, _rule())
    assert attended[1].isnan().all()
    expected = sequences.expected(rows, _rule())
    torch.testing.assert_close(attended[[0, 2]], expected[[0, 2]])
