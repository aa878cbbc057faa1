"""Products of a few rows, or of many, with a weight that lies in panels, on one core, compiled for this processor.

A decode step multiplies a few rows by all weights. So a product is as fast as the weight is read, if it is read in the
order in which it lies and nothing but sums is kept between (`panel_sums`). A panel that the next rows need is in the
cache still; with many rows, some panels are. While a panel is multiplied, the next one is loaded, so that the core does
not wait for it.

Each output is a sum over the inputs in their order, whatever the number of rows: a row's numbers are the same in any
company. The sum of some inputs is taken by itself and then added, so that little is rounded away.

Knows addresses of rows and of panels. Does not know torch. Source of the order of loops: Goto and van de Geijn, Anatomy
of High-Performance Matrix Multiplication, 2008.
"""

from enum import IntEnum
from typing import Any, Final

import numba

from edgeweave.model.compiled import compiled
from edgeweave.model.panel_sums import INPUT_BYTES, INPUTS_IN_WORD, MOST_ROWS, WORD_BYTES, copy_word, panel_sums
from edgeweave.model.prefetch import LINE_BYTES
from edgeweave.model.registers import WIDTH

_MOST_AHEAD: Final = 32 * 1024
"""How far ahead is loaded at most, in bytes: a part of the second cache."""
_FEW_ROWS: Final = 32
_BLOCK_BYTES: Final = 256 * 1024
"""So much of a weight all rows pass before more of it is read, if they are more than a few: half of a usual cache."""
_FLOAT_BYTES: Final = 4
_LINE_WORDS: Final = LINE_BYTES // WORD_BYTES
_ADDRESS = numba.uintp


class Arithmetic(IntEnum):
    """What is multiplied: inputs of a type with weights of a type. Sums are float32."""

    FLOAT32 = 0
    FLOAT32_WITH_BFLOAT16 = 1
    BFLOAT16 = 2
    """Only where the processor multiplies bfloat16."""


@compiled("void(uintp, uintp, int64, int64, int64)")
def lay_out(rows: Any, to: Any, num_rows: Any, num_inputs: Any, arithmetic: Any) -> None:
    """Write `rows` [rows, inputs] to `to` in the order in which `multiply` reads them: word by word for some rows."""
    num_words = num_inputs * INPUT_BYTES[arithmetic] // WORD_BYTES
    num_groups, begin = -(-num_rows // MOST_ROWS[arithmetic]), 0
    for group in range(num_groups):
        end = num_rows * (group + 1) // num_groups
        for first_word in range(0, num_words, _LINE_WORDS):
            for row in range(begin, end):
                source = rows + _ADDRESS(row * num_words * WORD_BYTES)
                target = to + _ADDRESS((begin * num_words + row - begin) * WORD_BYTES)
                for word in range(first_word, min(num_words, first_word + _LINE_WORDS)):
                    copy_word(
                        target + _ADDRESS(word * (end - begin) * WORD_BYTES), source + _ADDRESS(word * WORD_BYTES)
                    )
        begin = end


@compiled(f"void({', '.join(['uintp'] * 4)}, {', '.join(['int64'] * 4)})")
def multiply(
    rows: Any, panels: Any, bias: Any, results: Any, num_rows: Any, num_inputs: Any, num_outputs: Any, arithmetic: Any
) -> None:
    """Write to `results` [rows, outputs] the products of `rows`, laid out, with `panels`, and `bias` [outputs].

    All are contiguous and given by their addresses. Rows and weights have the types of `arithmetic`, all else is
    float32. There is at least one row, inputs are a multiple of `INPUTS_AT_ONCE`, outputs are no fewer than `WIDTH`.
    Panel i holds the weights of `WIDTH` outputs, from output i * WIDTH on or, if that is fewer, of the last ones:
    [inputs, WIDTH] of float32, or [inputs / 2, WIDTH, 2] of bfloat16.
    """
    input_bytes, word_inputs, most_rows = INPUT_BYTES[arithmetic], INPUTS_IN_WORD[arithmetic], MOST_ROWS[arithmetic]
    num_panels, num_groups = -(-num_outputs // WIDTH), -(-num_rows // most_rows)
    panel_bytes = num_inputs // word_inputs * WIDTH * WORD_BYTES
    together = max(1, _BLOCK_BYTES // panel_bytes) if num_rows > _FEW_ROWS else 1
    ahead, result_bytes = _ADDRESS(min(panel_bytes, _MOST_AHEAD)), _ADDRESS(num_outputs * _FLOAT_BYTES)
    for first_panel in range(0, num_panels, together):
        begin = 0
        for group in range(num_groups):
            end = num_rows * (group + 1) // num_groups
            for index in range(first_panel, min(num_panels, first_panel + together)):
                output = _ADDRESS(min(index * WIDTH, num_outputs - WIDTH) * _FLOAT_BYTES)
                panel_sums(
                    _ADDRESS(arithmetic),
                    _ADDRESS(end - begin),
                    rows + _ADDRESS(begin * num_inputs * input_bytes),
                    panels + _ADDRESS(index * panel_bytes),
                    ahead,
                    _ADDRESS(num_inputs),
                    bias + output,
                    results + _ADDRESS(begin) * result_bytes + output,
                    result_bytes,
                )
            begin = end
