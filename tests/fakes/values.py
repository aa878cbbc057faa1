"""Copies and marks of whole object trees, quick enough for every state of a walk.

Knows lists, dicts, sets, deques and objects with attributes. What cannot change (numbers, strings, tuples, frozen
dataclasses, enums, classes, functions) is shared between copies. Trees without cycles only.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")
Memo = dict[int, Any]
ATOMS = (type(None), bool, int, float, str, bytes, tuple, frozenset, type, Enum, Exception, FunctionType)


def clone(value: T, *, shared: Iterable[object] = ()) -> T:
    """Return a copy in which what was one object stays one object. `shared` parts are not copied."""
    copied: T = _clone(value, {id(part): part for part in shared})
    return copied


def mark(value: Any) -> Hashable:
    """Return a hashable value; two are equal if nothing that can change tells their trees apart."""
    kind: type = type(value)
    return value if is_atom(kind) else _MARKS.get(kind, _mark_object)(value)


def _clone(value: Any, memo: Memo) -> Any:
    kind: type = type(value)
    if is_atom(kind):
        return value
    key = id(value)
    if key not in memo:
        memo[key] = _CLONES.get(kind, _clone_object)(value, memo)
    return memo[key]


def _clone_object(value: Any, memo: Memo) -> Any:
    kind: type = type(value)
    names, read = fields_of(kind, tuple(getattr(value, "__dict__", ())))
    copied: Any = object.__new__(kind)
    for name, item in zip(names, read(value), strict=True):
        setattr(copied, name, _clone(item, memo))
    return copied


def _mark_object(value: Any) -> Hashable:
    kind: type = type(value)
    _, read = fields_of(kind, tuple(getattr(value, "__dict__", ())))
    return kind, *map(mark, read(value))


_CLONES: dict[type, Callable[[Any, Memo], Any]] = {
    list: lambda value, memo: [_clone(item, memo) for item in value],
    dict: lambda value, memo: {key: _clone(item, memo) for key, item in value.items()},
    set: lambda value, _: set(value),
    deque: lambda value, memo: deque([_clone(item, memo) for item in value]),
}
_MARKS: dict[type, Callable[[Any], Hashable]] = {
    list: lambda value: tuple(map(mark, value)),
    dict: lambda value: tuple([(key, mark(item)) for key, item in value.items()]),
    set: frozenset,
    deque: lambda value: tuple(map(mark, value)),
}


@cache
def is_atom(kind: type) -> bool:
    """Whether values of `kind` cannot change."""
    is_frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined] # not in its stub
    return is_frozen or issubclass(kind, ATOMS)


@cache
def fields_of(kind: type, extra: tuple[str, ...]) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Return the names of all attributes of a `kind`, those of its `__dict__` in `extra`, and how to read them."""
    names = tuple(name for base in kind.__mro__ for name in getattr(base, "__slots__", ())) + extra
    if len(names) == 1:
        (name,) = names
        return names, lambda value: (getattr(value, name),)
    return names, attrgetter(*names) if names else lambda _: ()
