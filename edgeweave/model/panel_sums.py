"""The sums of one panel for a few rows, written as vectors for the compiler.

A panel holds the weights of so many outputs as two registers hold: a word for each output, then the words of the next
inputs. A word is a float32, or two bfloat16: the weights of two inputs. Rows lie likewise: a word of each, then the
next words. The sums of all rows stay in registers while rows and panel are read once, in the order in which they lie,
with one pointer each: so the loop needs no other registers.

Knows vectors, registers and words. Does not know how large a weight is, nor where a panel begins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from edgeweave.model.prefetch import LINE_BYTES, begin_loading
from edgeweave.model.registers import (
    FLOATS_IN_REGISTER,
    INPUTS_AT_ONCE,
    MULTIPLIES_BFLOAT16,
    VECTOR_REGISTERS,
    WIDTH,
)

WORD_BYTES: Final = 4
_INPUTS_TOGETHER: Final = 128
"""Inputs whose products are summed before they are added to what was before: fewer round less, more cost less."""
_LOADED_AHEAD_FROM: Final = 6
"""Multiply-adds for a line of weights from which the next ones are loaded ahead: with fewer the processor does it."""

_FLOAT, _WORD, _LONG, _POINTER = ir.FloatType(), ir.IntType(32), ir.IntType(64), ir.PointerType()
_SUMS = ir.VectorType(_FLOAT, WIDTH)
_WORDS = ir.VectorType(_WORD, WIDTH)
_ZEROS = ir.Constant(_SUMS, [0.0] * WIDTH)

_AddProducts = Callable[[Any, Any, Any, Sequence[Any]], list[Any]]
"""Given a builder, the address of a word for each output, that of a word of each row, and sums: returns new sums."""


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """How the inputs of rows, of `input_bytes` each, are multiplied with words of weights.

    Each of `most_rows` takes two registers, a word for each output two, halves of words two more, an input may take
    one.
    """

    add_products: _AddProducts
    inputs_in_word: int
    input_bytes: int
    most_rows: int

    def is_slower_than_reading(self, num_rows: int) -> bool:
        """Return whether the weights of a line are multiplied so long that loading the next ones ahead pays."""
        multiplied_of_line = LINE_BYTES // WORD_BYTES // FLOATS_IN_REGISTER * num_rows
        inputs_at_once = WORD_BYTES // self.input_bytes
        return multiplied_of_line * self.inputs_in_word // inputs_at_once >= _LOADED_AHEAD_FROM


def _loaded(builder: Any, address: Any, kind: Any) -> Any:
    value = builder.load(builder.inttoptr(address, _POINTER), typ=kind)
    value.align = WORD_BYTES
    return value


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    """Return a vector of which each element is `number`."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, number, _WORD(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_WORD, kind.count), [0] * kind.count))


def _function(builder: Any, name: str, result: Any, operands: Sequence[Any]) -> Any:
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, operands), name)


def _after(builder: Any, address: Any, num_words: int) -> Any:
    return builder.add(address, _LONG(num_words * WORD_BYTES))


def _add_floats(builder: Any, weights: Any, inputs: Any, sums: Sequence[Any]) -> list[Any]:
    """Add the products of one float32 of each row with `weights`, a vector."""
    multiply_add = _function(builder, f"llvm.fma.v{WIDTH}f32", _SUMS, [_SUMS] * 3)
    results = []
    for number, before in enumerate(sums):
        value = _spread(builder, _loaded(builder, _after(builder, inputs, number), _FLOAT), _SUMS)
        results.append(builder.call(multiply_add, [value, weights, before]))
    return results


def _add_float32(builder: Any, words: Any, inputs: Any, sums: Sequence[Any]) -> list[Any]:
    return _add_floats(builder, _loaded(builder, words, _SUMS), inputs, sums)


def _add_halves(builder: Any, words: Any, inputs: Any, sums: Sequence[Any]) -> list[Any]:
    """The upper half of a float32 is a bfloat16: a shift makes the first of a word one, a mask the second."""
    both = _loaded(builder, words, _WORDS)
    first = builder.bitcast(builder.shl(both, ir.Constant(_WORDS, [16] * WIDTH)), _SUMS)
    second = builder.bitcast(builder.and_(both, ir.Constant(_WORDS, [0xFFFF0000] * WIDTH)), _SUMS)
    after_first = _add_floats(builder, first, inputs, sums)
    return _add_floats(builder, second, _after(builder, inputs, len(sums)), after_first)


class _BFloat16(ir.Type):  # type: ignore[misc]  # untyped there
    """bfloat16, which the compiler has and the library that writes for it has not."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat16)

    def __hash__(self) -> int:
        return hash(_BFloat16)


def _add_pairs(builder: Any, words: Any, inputs: Any, sums: Sequence[Any]) -> list[Any]:
    """One instruction multiplies two inputs of a row with their weights and adds both products, in each register."""
    size = FLOATS_IN_REGISTER
    register, of_words = ir.VectorType(_FLOAT, size), ir.VectorType(_WORD, size)
    pairs = ir.VectorType(_BFloat16(), 2 * size)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * size}"
    multiply_add = _function(builder, name, register, [register, pairs, pairs])
    weights = [
        builder.bitcast(_loaded(builder, _after(builder, words, part * size), of_words), pairs) for part in (0, 1)
    ]
    places = [ir.Constant(of_words, [part * size + place for place in range(size)]) for part in (0, 1)]
    whole = ir.Constant(_WORDS, list(range(WIDTH)))
    results = []
    for number, before in enumerate(sums):
        pair = _loaded(builder, _after(builder, inputs, number), _WORD)
        value = builder.bitcast(_spread(builder, pair, of_words), pairs)
        parts = [
            builder.call(multiply_add, [builder.shuffle_vector(before, before, places[part]), value, weights[part]])
            for part in (0, 1)
        ]
        results.append(builder.shuffle_vector(*parts, whole))
    return results


_HAS_MANY: Final = VECTOR_REGISTERS >= 32  # noqa: PLR2004  the other number is 16
_ARITHMETICS: Final = (
    _Arithmetic(_add_float32, inputs_in_word=1, input_bytes=4, most_rows=12 if _HAS_MANY else 6),
    _Arithmetic(_add_halves, inputs_in_word=2, input_bytes=4, most_rows=12 if _HAS_MANY else 5),
    _Arithmetic(_add_pairs, inputs_in_word=2, input_bytes=2, most_rows=12),
)
"""Float32 with float32; float32 with bfloat16; bfloat16 with bfloat16, where the processor multiplies them."""
_USED: Final = _ARITHMETICS if MULTIPLIES_BFLOAT16 else _ARITHMETICS[:2]

INPUTS_IN_WORD: Final = tuple(arithmetic.inputs_in_word for arithmetic in _ARITHMETICS)
INPUT_BYTES: Final = tuple(arithmetic.input_bytes for arithmetic in _ARITHMETICS)
MOST_ROWS: Final = tuple(arithmetic.most_rows for arithmetic in _ARITHMETICS)
"""Of each arithmetic; `MOST_ROWS` are those whose sums stay in registers together."""


def _write_sums(builder: Any, arithmetic: _Arithmetic, num_rows: int, arguments: Sequence[Any]) -> None:
    """Write the sums of one panel for `num_rows` rows; `arguments` are those of `panel_sums` after the second.

    Each part of the inputs is summed in registers, and then added to what was before.
    """
    rows, panel, ahead, num_inputs, bias, result, result_bytes = arguments
    before = builder.block
    part, inputs, after, over = (builder.append_basic_block(name) for name in ("part", "inputs", "after", "over"))
    row_bytes = num_rows * arithmetic.input_bytes
    stop = builder.add(rows, builder.mul(num_inputs, _LONG(row_bytes)))
    builder.branch(part)
    builder.position_at_end(part)
    part_rows, part_panel = builder.phi(_LONG), builder.phi(_LONG)
    part_before, before_bytes = builder.phi(_LONG), builder.phi(_LONG)
    following_part = builder.add(part_rows, _LONG(_INPUTS_TOGETHER * row_bytes))
    is_last = builder.icmp_unsigned(">=", following_part, stop)
    part_stop = builder.select(is_last, stop, following_part)
    builder.branch(inputs)
    builder.position_at_end(inputs)
    at, words = builder.phi(_LONG), builder.phi(_LONG)
    kept = [builder.phi(_SUMS) for _ in range(num_rows)]
    sums = list(kept)
    num_words = INPUTS_AT_ONCE // arithmetic.inputs_in_word
    if arithmetic.is_slower_than_reading(num_rows):
        for line in range(num_words * WIDTH * WORD_BYTES // LINE_BYTES):
            begin_loading(builder, builder.add(builder.add(words, ahead), _LONG(line * LINE_BYTES)))
    input_words = arithmetic.inputs_in_word * row_bytes // WORD_BYTES
    for step in range(num_words):
        at_words, at_inputs = _after(builder, words, step * WIDTH), _after(builder, at, step * input_words)
        sums = arithmetic.add_products(builder, at_words, at_inputs, sums)
    following = _after(builder, at, num_words * input_words), _after(builder, words, num_words * WIDTH)
    begins, ends = [part_rows, part_panel, *[_ZEROS] * num_rows], [*following, *sums]
    for phi, begin, end in zip([at, words, *kept], begins, ends, strict=True):
        phi.add_incoming(begin, part)
        phi.add_incoming(end, inputs)
    builder.cbranch(builder.icmp_unsigned("<", following[0], part_stop), inputs, after)
    builder.position_at_end(after)
    for number, products in enumerate(sums):
        begun = _loaded(builder, builder.add(part_before, builder.mul(_LONG(number), before_bytes)), _SUMS)
        address = builder.add(result, builder.mul(_LONG(number), result_bytes))
        builder.store(builder.fadd(begun, products), builder.inttoptr(address, _POINTER)).align = WORD_BYTES
    carried = [part_rows, part_panel, part_before, before_bytes]
    begins, ends = [rows, panel, bias, _LONG(0)], [*following, result, result_bytes]
    for phi, begin, end in zip(carried, begins, ends, strict=True):
        phi.add_incoming(begin, before)
        phi.add_incoming(end, after)
    builder.cbranch(is_last, over, part)
    builder.position_at_end(over)


def _choices(arithmetics: Sequence[_Arithmetic], fewest_rows: Sequence[int]) -> Callable[..., Any]:
    """Return what generates a piece of code for each arithmetic and number of rows, and the choice."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Sequence[Any]) -> Any:
        which, num_rows, *others = arguments
        over = builder.append_basic_block("over")
        choice = builder.switch(which, over)
        for index, (arithmetic, fewest) in enumerate(zip(arithmetics, fewest_rows, strict=True)):
            by_rows = builder.append_basic_block(f"arithmetic_{index}")
            choice.add_case(_LONG(index), by_rows)
            builder.position_at_end(by_rows)
            choice_of_rows = builder.switch(num_rows, over)
            for number in range(fewest, arithmetic.most_rows + 1):
                block = builder.append_basic_block(f"arithmetic_{index}_rows_{number}")
                choice_of_rows.add_case(_LONG(number), block)
                builder.position_at_end(block)
                _write_sums(builder, arithmetic, number, others)
                builder.branch(over)
        builder.position_at_end(over)
        return context.get_dummy_value()

    return generate


def _sums(arithmetics: Sequence[_Arithmetic], fewest_rows: Sequence[int]) -> Any:
    generate = _choices(arithmetics, fewest_rows)

    def typed(
        _typing: Any,
        _which: Any,
        _num_rows: Any,
        _rows: Any,
        _panel: Any,
        _ahead: Any,
        _num_inputs: Any,
        _bias: Any,
        _result: Any,
        _result_bytes: Any,
    ) -> tuple[Any, Callable[..., Any]]:
        return types.void(*[types.uintp] * 9), generate

    return intrinsic(typed)


panel_sums: Any = _sums(_USED, [1] * len(_USED))
"""Writes the sums of one panel, for one row up to `MOST_ROWS`.

Its arguments are which arithmetic, the number of rows, where they begin and where the panel does, how many bytes
further weights are loaded ahead, the number of inputs, where what is added to each row's sums begins, where the first
row's results do, and the bytes from one row's to the next.
"""
tile_sums: Any = _sums(_USED[:1], [_USED[0].most_rows])
"""The same for float32 alone, which is arithmetic 0, and `MOST_ROWS` of it: less to compile."""


def _typed_copy(_typing: Any, _to: Any, _source: Any) -> tuple[Any, Callable[..., Any]]:
    return types.void(types.uintp, types.uintp), _generate_copy


def _generate_copy(context: Any, builder: Any, _signature: Any, arguments: Sequence[Any]) -> Any:
    to, source = arguments
    builder.store(_loaded(builder, source, _WORD), builder.inttoptr(to, _POINTER)).align = WORD_BYTES
    return context.get_dummy_value()


copy_word: Any = intrinsic(_typed_copy)
"""Writes to an address the word at another."""
