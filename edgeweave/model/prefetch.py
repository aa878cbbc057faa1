"""One instruction of the processor for compiled functions: begin to load a line of memory that is needed soon.

Knows how numba makes an instruction of its compiler available. Does not know what is loaded.
"""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

LINE_BYTES: Final = 64
"""What one such instruction loads."""

_NAME: Final = "llvm.prefetch.p0"
_READ, _SECOND_CACHE, _NOT_CODE = 0, 2, 1


def begin_loading(builder: Any, address: Any) -> None:
    """Have `builder` begin to load the line at an address; one that is not mapped is ignored.

    Into the second cache: more lines can be on their way to it than to the first, and they displace nothing there.
    """
    number, pointer = ir.IntType(32), ir.PointerType()
    known = builder.module.globals.get(_NAME)
    function = known or ir.Function(
        builder.module, ir.FunctionType(ir.VoidType(), [pointer, number, number, number]), _NAME
    )
    words = [builder.inttoptr(address, pointer), *(number(value) for value in (_READ, _SECOND_CACHE, _NOT_CODE))]
    builder.call(function, words)


def _prefetch(_typing: Any, _address: Any) -> tuple[Any, Callable[..., Any]]:
    return types.void(types.uintp), _generate


def _generate(context: Any, builder: Any, _signature: Any, arguments: tuple[Any, ...]) -> Any:
    begin_loading(builder, arguments[0])
    return context.get_dummy_value()


prefetch: Any = intrinsic(_prefetch)
"""Begins to load the line at an address, a number; one that is not mapped is ignored."""
