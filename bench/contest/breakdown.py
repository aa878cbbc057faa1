"""Where the time of a decode step goes: linear layers, attention, other operators, and Python around them.

A profiler tells the time of each operator, and takes time itself. What it takes is found by comparing steps with and
without it, is spread evenly over the operators that it recorded, and is taken off where it was counted: a record is
written outside the operator itself, so within the one that called it. What is left of an undisturbed step when all
operators are taken off is Python: the interpreter, and the way into an operator.

Knows names and times. Does not know how they were recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

ATTENTION_LABEL = "attention of a layer"
"""Under this name what a layer does with its keys and values is recorded as a whole; its own time is Python."""
COMPILED_LABEL = "compiled attention"
"""Under this name attention that is no operator of torch is recorded, which counts as if it were one."""
PRODUCT_LABEL = "compiled linear"
"""Under this name products of linear layers are recorded that are no operator of torch, as if they were one."""
_LINEAR_WORDS = ("linear",)
_LINEAR_NAMES = frozenset({"aten::addmm", "aten::mm"})
_ATTENTION_LABELS = frozenset({ATTENTION_LABEL, COMPILED_LABEL})
_ATTENTION_WORDS = ("scaled_dot_product", "flash_attention")


class Part(Enum):
    """What a step's time goes to, in the order of a table."""

    LINEAR = "linear layers"
    ATTENTION = "attention"
    OTHER = "other operators"
    PYTHON = "Python"


@dataclass(frozen=True, slots=True)
class OpCall:
    """One call of an operator. `path` are the names from its own to the outermost; `self_us` is without its callees."""

    path: tuple[str, ...]
    self_us: float
    num_callees: int


@dataclass(frozen=True, slots=True)
class OpTime:
    """All calls of one operator in a step."""

    name: str
    part: Part
    num_calls: float
    self_us: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A step of `step_us` without a profiler, by part; the parts add up to it. `record_us` is what one record took."""

    step_us: float
    record_us: float
    parts_us: dict[Part, float]
    ops: tuple[OpTime, ...]


def breakdown(calls: Sequence[OpCall], *, step_us: float, profiled_step_us: float, num_steps: int) -> Breakdown:
    """Return where a step of `step_us` goes, from all `calls` of `num_steps` steps of `profiled_step_us` each."""
    record_us = max(0.0, profiled_step_us - step_us) * num_steps / len(calls) if calls else 0.0
    sums: dict[tuple[str, Part], tuple[int, float]] = {}
    for call in calls:
        if call.path[0] == ATTENTION_LABEL:
            continue
        key = (call.path[0], part_of(call.path))
        num_calls, self_us = sums.get(key, (0, 0.0))
        sums[key] = (num_calls + 1, self_us + max(0.0, call.self_us - record_us * call.num_callees))
    ops = [OpTime(*key, num_calls / num_steps, self_us / num_steps) for key, (num_calls, self_us) in sums.items()]
    in_ops_us = {part: sum(op.self_us for op in ops if op.part is part) for part in Part}
    parts_us = in_ops_us | {Part.PYTHON: step_us - sum(in_ops_us.values())}
    return Breakdown(step_us, record_us, parts_us, tuple(sorted(ops, key=lambda op: op.self_us, reverse=True)))


def part_of(path: Sequence[str]) -> Part:
    """Return the part of an operator, by its own name and those of what called it."""
    if any(name in _ATTENTION_LABELS or any(word in name for word in _ATTENTION_WORDS) for name in path):
        return Part.ATTENTION
    if any(name in _LINEAR_NAMES or any(word in name for word in _LINEAR_WORDS) for name in path):
        return Part.LINEAR
    return Part.OTHER
