"""Where the time of a step goes."""

import pytest

from contest.breakdown import ATTENTION_LABEL, COMPILED_LABEL, PRODUCT_LABEL, OpCall, Part, breakdown, part_of

CALLS = [
    OpCall(("aten::linear",), 10.0, 1),
    OpCall(("aten::addmm", "aten::linear"), 300.0, 0),
    OpCall((ATTENTION_LABEL,), 50.0, 2),
    OpCall(("aten::index_copy_", ATTENTION_LABEL), 40.0, 0),
    OpCall(("aten::scaled_dot_product_attention", ATTENTION_LABEL), 60.0, 0),
    OpCall(("aten::mul",), 20.0, 0),
]


def test_parts_add_up_to_the_step_without_the_profiler() -> None:
    """Six records made two steps 12 us longer, 2 us each; one was written within the linear operator."""
    found = breakdown(CALLS, step_us=400.0, profiled_step_us=406.0, num_steps=2)
    assert found.record_us == 2.0
    assert found.parts_us == {Part.LINEAR: 154.0, Part.ATTENTION: 50.0, Part.OTHER: 10.0, Part.PYTHON: 186.0}
    assert sum(found.parts_us.values()) == found.step_us


def test_operators_are_listed_by_time_with_their_calls_in_a_step() -> None:
    ops = breakdown(CALLS * 2, step_us=400.0, profiled_step_us=400.0, num_steps=4).ops
    assert [(op.name, op.num_calls, op.self_us) for op in ops[:2]] == [
        ("aten::addmm", 0.5, 150.0),
        ("aten::scaled_dot_product_attention", 0.5, 30.0),
    ]
    assert ATTENTION_LABEL not in {op.name for op in ops}


def test_compiled_attention_counts_as_an_operator() -> None:
    calls = [OpCall((ATTENTION_LABEL,), 5.0, 1), OpCall((COMPILED_LABEL, ATTENTION_LABEL), 30.0, 0)]
    found = breakdown(calls, step_us=100.0, profiled_step_us=100.0, num_steps=1)
    assert found.parts_us[Part.ATTENTION] == 30.0
    assert found.parts_us[Part.PYTHON] == 70.0


def test_an_operator_is_never_less_than_nothing() -> None:
    found = breakdown([OpCall(("aten::mul",), 1.0, 5)], step_us=10.0, profiled_step_us=20.0, num_steps=1)
    assert found.parts_us[Part.OTHER] == 0.0


def test_noise_that_makes_steps_under_the_profiler_faster_takes_nothing_off() -> None:
    assert breakdown(CALLS, step_us=400.0, profiled_step_us=390.0, num_steps=2).record_us == 0.0


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (("mkldnn::_linear_pointwise",), Part.LINEAR),
        ((PRODUCT_LABEL,), Part.LINEAR),
        (("aten::mm", "aten::matmul", "aten::linear"), Part.LINEAR),
        (("aten::mm", "aten::matmul", ATTENTION_LABEL), Part.ATTENTION),
        (("aten::empty", "aten::_scaled_dot_product_flash_attention_for_cpu"), Part.ATTENTION),
        ((COMPILED_LABEL, ATTENTION_LABEL), Part.ATTENTION),
        (("aten::rms_norm",), Part.OTHER),
    ],
)
def test_an_operator_belongs_to_what_called_it(path: tuple[str, ...], part: Part) -> None:
    assert part_of(path) is part
