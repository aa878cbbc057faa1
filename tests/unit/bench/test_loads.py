"""The loads of the bench."""

from pathlib import Path

import pytest

from edgeweave.errors import InvalidRequestError
from weaving.loads import Steady, bench_loads, warm_up_of

LOADS = bench_loads()


def test_loads_are_as_their_names_say() -> None:
    """A and B are replenished up to a limit, the others are not; each fits into the sequences that are served."""
    assert {name: len(load.load.arrivals) for name, load in LOADS.items()} == {
        "A": 60,
        "B": 120,
        "prefill": 40,
        "decode": 16,
        "C": 150,
    }
    assert {name: load.load.max_open for name, load in LOADS.items() if load.load.max_open} == {"A": 12, "B": 22}
    assert LOADS["prefill"].num_later_tokens == 0


def test_the_trace_gives_lengths_within_what_is_served() -> None:
    load = LOADS["C"]
    prompts = [arrival.num_prompt_tokens for arrival in load.load.arrivals]
    assert (min(prompts), max(prompts)) == (16, 512)
    assert (min(load.num_output_tokens), max(load.num_output_tokens)) == (4, 64)


def test_an_open_load_comes_at_its_rate_and_always_the_same() -> None:
    coming = LOADS["C"].arriving(rate_per_s=10.0)
    assert coming == LOADS["C"].arriving(rate_per_s=10.0)
    assert coming.load.arrivals[-1].at_us == pytest.approx(15e6, rel=0.2)
    assert coming.num_output_tokens == LOADS["C"].num_output_tokens


def test_prompts_have_their_lengths_and_depend_on_the_name_alone() -> None:
    load = LOADS["A"].first(3)
    prompts = load.prompts(vocab_size=100)
    assert [len(prompt) for prompt in prompts] == [arrival.num_prompt_tokens for arrival in load.load.arrivals]
    assert prompts == load.prompts(vocab_size=100)
    assert all(3 <= token < 100 for prompt in prompts for token in prompt)
    assert prompts != LOADS["B"].first(3).prompts(vocab_size=100)


@pytest.mark.parametrize("name", LOADS)
def test_a_warm_up_is_short_and_has_prompts_of_its_own(name: str) -> None:
    """Nothing of the load is known to the mesh when it begins, but how long steps take by rows is."""
    warm_up = warm_up_of(LOADS[name])
    assert warm_up.prompts(vocab_size=100)[0] != LOADS[name].prompts(vocab_size=100)[0]
    assert len(warm_up.load.arrivals) <= 16
    assert max(warm_up.num_output_tokens) <= 24
    assert warm_up.load.max_open == LOADS[name].load.max_open


def test_the_warm_up_of_decode_alone_ends_two_by_two() -> None:
    """So steps of a half, a third and a quarter of the batch are seen, which its bound asks for."""
    outputs = warm_up_of(LOADS["decode"]).num_output_tokens
    assert LOADS["decode"].steady is Steady.DECODE
    assert sorted(outputs) == sorted([*range(3, 27, 3), *range(3, 27, 3)])


def test_a_trace_that_is_none_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,1\n", encoding="utf-8")
    with pytest.raises(InvalidRequestError, match=r"trace.csv:2: not a line of an Azure trace"):
        bench_loads(trace=trace)
