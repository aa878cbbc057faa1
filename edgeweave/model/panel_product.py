"""Products of a few rows, or of many, with a weight that lies in panels, on one core, compiled for this processor.

A decode step multiplies a few rows by all weights. So a product is as fast as the weight is read, if it is read in the
order in which it lies and nothing but sums is kept between: a panel is so many outputs as two registers hold, input
after input. Sums of a panel for some rows stay in registers over many inputs; then they are written.
A panel that the next rows need is in the cache still; with many rows, some panels are. While a panel is multiplied, the
next one is loaded, so that the core does not wait for it.

Each output is a sum over the inputs in their order, whatever the number of rows: a row's numbers are the same in any
company. The sum of some inputs is taken by itself and then added, so that little is rounded away. Weights may be
bfloat16, the upper half of a float32. Those of two inputs lie in one word: a shift gives the first as a float32, a mask
the second.

Knows addresses of float32 rows and of panels. Does not know torch. Source of the order of loops: Goto and van de Geijn,
Anatomy of High-Performance Matrix Multiplication, 2008.
"""

from collections.abc import Callable
from typing import Any, Final

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from edgeweave.model.compiled import compiled
from edgeweave.model.prefetch import LINE_BYTES, SECOND_CACHE, begin_loading
from edgeweave.model.registers import FLOATS_IN_REGISTER, INPUTS_AT_ONCE, VECTOR_REGISTERS, WIDTH

_MOST_FLOAT32_ROWS, _MOST_BFLOAT16_ROWS = (6, 5) if VECTOR_REGISTERS < 32 else (12, 12)  # noqa: PLR2004  see below
"""Rows whose sums stay in registers together, by the type of weights, with 16 registers and with 32.

Each row takes two of them, weights of one input two, halves in words two more; an input of a row may take one.
"""
_LOADED_AHEAD_FROM: Final = 6
"""Multiply-adds for a line of weights from which the next ones are loaded ahead: with fewer the processor does it."""
_MOST_AHEAD: Final = 32 * 1024
"""How far ahead at most, in bytes: a part of the second cache."""
_INPUTS_TOGETHER: Final = 128
"""Inputs whose products are summed before they are added to what was before: fewer round less, more cost less."""
_FEW_ROWS: Final = 32
_BLOCK_BYTES: Final = 256 * 1024
"""So much of a weight all rows pass before more of it is read, if they are more than a few: half of a usual cache."""
_FLOAT_BYTES: Final = 4
_MOST_ROWS: Final = {_FLOAT_BYTES: _MOST_FLOAT32_ROWS, 2: _MOST_BFLOAT16_ROWS}
"""By the bytes of a weight."""
_ADDRESS = numba.uintp

_FLOAT, _WORD, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_POINTER = ir.PointerType()
_SUMS = ir.VectorType(_FLOAT, WIDTH)
_WORDS = ir.VectorType(_WORD, WIDTH)
_ZEROS = ir.Constant(_SUMS, [0.0] * WIDTH)


def _loaded(builder: Any, address: Any, kind: Any) -> Any:
    value = builder.load(builder.inttoptr(address, _POINTER), typ=kind)
    value.align = _FLOAT_BYTES
    return value


def _spread(builder: Any, number: Any) -> Any:
    """Return a vector of which each element is `number`."""
    nothing = ir.Constant(_SUMS, ir.Undefined)
    first = builder.insert_element(nothing, number, _WORD(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_WORDS, [0] * WIDTH))


def _weights(builder: Any, address: Any, weight_bytes: int) -> list[Any]:
    """Return the weights of the next inputs to all outputs of a panel: those of one word for each output."""
    if weight_bytes == _FLOAT_BYTES:
        return [_loaded(builder, address, _SUMS)]
    words = _loaded(builder, address, _WORDS)
    first = builder.shl(words, ir.Constant(_WORDS, [16] * WIDTH))
    second = builder.and_(words, ir.Constant(_WORDS, [0xFFFF0000] * WIDTH))
    return [builder.bitcast(first, _SUMS), builder.bitcast(second, _SUMS)]


def _multiply_add(builder: Any) -> Any:
    name = f"llvm.fma.v{WIDTH}f32"
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(_SUMS, [_SUMS] * 3), name)


def _load_ahead(builder: Any, num_rows: int, weight_bytes: int, address: Any) -> None:
    """Begin to load the weights of so many inputs as are multiplied at once, if multiplying takes long enough."""
    multiplied_of_line = num_rows * LINE_BYTES // weight_bytes // FLOATS_IN_REGISTER
    if multiplied_of_line < _LOADED_AHEAD_FROM:
        return
    for offset in range(0, INPUTS_AT_ONCE * WIDTH * weight_bytes, LINE_BYTES):
        begin_loading(builder, builder.add(address, _LONG(offset)), SECOND_CACHE)


def _sums_of_rows(builder: Any, num_rows: int, weight_bytes: int, arguments: tuple[Any, ...]) -> None:
    """Write the sums of one panel for `num_rows` rows; `arguments` are those of `panel_sums` after the first."""
    row, row_bytes, panel, ahead, num_inputs, before_it, before_bytes, result, result_bytes = arguments
    multiply_add, before = _multiply_add(builder), builder.block
    inputs, after = builder.append_basic_block("inputs"), builder.append_basic_block("after")
    rows = [builder.add(row, builder.mul(_LONG(index), row_bytes)) for index in range(num_rows)]
    builder.branch(inputs)
    builder.position_at_end(inputs)
    at = builder.phi(_LONG)
    kept = [builder.phi(_SUMS) for _ in rows]
    sums = list(kept)
    at_weights = builder.add(panel, builder.mul(at, _LONG(WIDTH * weight_bytes)))
    at_inputs = builder.mul(at, _LONG(_FLOAT_BYTES))
    _load_ahead(builder, num_rows, weight_bytes, builder.add(at_weights, ahead))
    weights: list[Any] = []
    for step in range(INPUTS_AT_ONCE):
        if not weights:
            weights = _weights(builder, builder.add(at_weights, _LONG(step * WIDTH * weight_bytes)), weight_bytes)
        to_outputs, offset = weights.pop(0), builder.add(at_inputs, _LONG(step * _FLOAT_BYTES))
        for number, begin in enumerate(rows):
            value = _spread(builder, _loaded(builder, builder.add(begin, offset), _FLOAT))
            sums[number] = builder.call(multiply_add, [value, to_outputs, sums[number]])
    following = builder.add(at, _LONG(INPUTS_AT_ONCE))
    for phi, begin, end in zip([at, *kept], [_LONG(0), *[_ZEROS] * num_rows], [following, *sums], strict=True):
        phi.add_incoming(begin, before)
        phi.add_incoming(end, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, num_inputs), inputs, after)
    builder.position_at_end(after)
    for number, products in enumerate(sums):
        begun = _loaded(builder, builder.add(before_it, builder.mul(_LONG(number), before_bytes)), _SUMS)
        address = builder.add(result, builder.mul(_LONG(number), result_bytes))
        builder.store(builder.fadd(begun, products), builder.inttoptr(address, _POINTER)).align = _FLOAT_BYTES


def _generate_panel_sums(context: Any, builder: Any, _signature: Any, arguments: tuple[Any, ...]) -> Any:
    """Generate `_panel_sums`: a piece of code for each type of weights and each number of rows, and the choice."""
    weight_bytes, num_rows, *others = arguments
    over = builder.append_basic_block("over")
    by_weight = builder.switch(weight_bytes, over)
    for size, most_rows in _MOST_ROWS.items():
        by_rows_block = builder.append_basic_block(f"weights_{size}")
        by_weight.add_case(_LONG(size), by_rows_block)
        builder.position_at_end(by_rows_block)
        by_rows = builder.switch(num_rows, over)
        for number in range(1, most_rows + 1):
            block = builder.append_basic_block(f"weights_{size}_rows_{number}")
            by_rows.add_case(_LONG(number), block)
            builder.position_at_end(block)
            _sums_of_rows(builder, number, size, tuple(others))
            builder.branch(over)
    builder.position_at_end(over)
    return context.get_dummy_value()


def _type_panel_sums(
    _typing: Any,
    _weight_bytes: Any,
    _num_rows: Any,
    _row: Any,
    _row_bytes: Any,
    _panel: Any,
    _ahead: Any,
    _num_inputs: Any,
    _before_it: Any,
    _before_bytes: Any,
    _result: Any,
    _result_bytes: Any,
) -> tuple[Any, Callable[..., Any]]:
    return types.void(*[types.uintp] * 11), _generate_panel_sums


_panel_sums: Any = intrinsic(_type_panel_sums)
"""Writes the sums of one panel, for one row up to `_MOST_ROWS`.

Its arguments are the bytes of a weight, the number of rows, where the first begins, the bytes from one to the next,
where the panel begins, how many bytes further weights are loaded ahead, the number of inputs, where what is added
to the first row's sums begins, the bytes to the next row's, and the same of the results.
"""


@compiled(f"void({', '.join(['uintp'] * 4)}, {', '.join(['int64'] * 4)})")
def multiply(
    rows: Any,
    panels: Any,
    bias: Any,
    results: Any,
    num_rows: Any,
    num_inputs: Any,
    num_outputs: Any,
    weight_bytes: Any,
) -> None:
    """Write to `results` [rows, outputs] the products of `rows` [rows, inputs] with `panels`, and `bias` [outputs].

    All are contiguous float32, given by their addresses, except that weights have `weight_bytes`: those of float32 or
    of bfloat16. There is at least one row, inputs are a multiple of `INPUTS_AT_ONCE`, outputs are no fewer than
    `WIDTH`. Panel i holds the weights of `WIDTH` outputs, from output i * WIDTH on or, if that is fewer, of the last
    ones: [inputs, WIDTH] of float32, or [inputs / 2, WIDTH, 2] of bfloat16.
    """
    most_rows = _MOST_FLOAT32_ROWS if weight_bytes == _FLOAT_BYTES else _MOST_BFLOAT16_ROWS
    num_panels, num_groups = -(-num_outputs // WIDTH), -(-num_rows // most_rows)
    panel_bytes = num_inputs * WIDTH * weight_bytes
    together = max(1, _BLOCK_BYTES // panel_bytes) if num_rows > _FEW_ROWS else 1
    ahead = _ADDRESS(min(panel_bytes, _MOST_AHEAD))
    row_bytes, result_bytes = _ADDRESS(num_inputs * _FLOAT_BYTES), _ADDRESS(num_outputs * _FLOAT_BYTES)
    for first_panel in range(0, num_panels, together):
        begin = 0
        for group in range(num_groups):
            end = num_rows * (group + 1) // num_groups
            for index in range(first_panel, min(num_panels, first_panel + together)):
                output = _ADDRESS(min(index * WIDTH, num_outputs - WIDTH) * _FLOAT_BYTES)
                result = results + _ADDRESS(begin) * result_bytes + output
                before, before_bytes = bias + output, _ADDRESS(0)
                for first_input in range(0, num_inputs, _INPUTS_TOGETHER):
                    _panel_sums(
                        _ADDRESS(weight_bytes),
                        _ADDRESS(end - begin),
                        rows + _ADDRESS(begin) * row_bytes + _ADDRESS(first_input * _FLOAT_BYTES),
                        row_bytes,
                        panels + _ADDRESS(index * panel_bytes + first_input * WIDTH * weight_bytes),
                        ahead,
                        _ADDRESS(min(_INPUTS_TOGETHER, num_inputs - first_input)),
                        before,
                        before_bytes,
                        result,
                        result_bytes,
                    )
                    before, before_bytes = result, result_bytes
            begin = end
