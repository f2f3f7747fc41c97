"""The function registry: what a call in SQL means.

Three kinds of function, each an immutable value:

* :class:`ScalarFunction`: one value from some values;
* :class:`AggregateFunction`: one value from a group's rows.  Its heart is
  ``evaluate``, which takes the whole column of arguments of a group as a list,
  so that built-ins are one C loop; an incremental form (``algebra``) is what
  window frames and maintained views use;
* :class:`TableFunction`: rows from some values.

A :class:`FunctionRegistry` maps (name, number of arguments) to a function.
Lookups fall back from the exact count to variadic ones.  Registries layer: a
database's registry has the built-ins as its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quereus_store.types import LogicalType

Value = Any
ReturnType = LogicalType | Callable[[Sequence[LogicalType]], LogicalType]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A scalar function.

    ``null_propagates``: any NULL argument makes the result NULL, and ``call`` is
    never asked.  ``inline`` maps a tuple of argument type names (``None`` = any
    number) to a Python expression over ``{0}``, ``{1}``, ... that is equivalent
    for NOT NULL arguments of these types; generated code uses it instead of a
    call.  ``needs_context``: ``call`` takes the statement's runtime context
    first.  ``check`` may refuse argument types at prepare time.
    """

    name: str
    call: Callable[..., Value]
    minimum: int
    maximum: int | None
    returns: ReturnType
    nullable: bool = True
    null_propagates: bool = True
    deterministic: bool = True
    needs_context: bool = False
    inline: Mapping[tuple[str, ...], str] | None = None
    check: Callable[[Sequence[LogicalType]], None] | None = None


@dataclass(frozen=True, slots=True)
class Algebra:
    """How an aggregate can be kept up to date.

    ``start`` makes an empty state; ``add`` and ``remove`` return the state with
    a row's arguments (a tuple) counted in or out; ``merge`` joins two states;
    ``finish`` gives the value.  ``remove`` and ``merge`` are None where the
    aggregate has none.
    """

    start: Callable[[], Any]
    add: Callable[[Any, tuple[Value, ...]], Any]
    finish: Callable[[Any], Value]
    remove: Callable[[Any, tuple[Value, ...]], Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function.

    ``evaluate`` takes one list per argument, all of the group's length and in
    row order.  ``skips_nulls``: rows whose first argument is NULL are left out
    before ``evaluate`` sees them.  An aggregate over no rows gives
    ``evaluate`` of empty lists.
    ``ordered`` tells that the result depends on the order of the rows.
    ``collated`` (min, max): ``evaluate`` takes a keyword ``key``, the order key
    of the argument's type and collation (None: values order themselves).
    """

    name: str
    evaluate: Callable[..., Value]
    minimum: int
    maximum: int | None
    returns: ReturnType
    nullable: bool = True
    skips_nulls: bool = True
    ordered: bool = False
    collated: bool = False
    deterministic: bool = True
    algebra: Algebra | None = None
    check: Callable[[Sequence[LogicalType]], None] | None = None


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a table function."""

    name: str
    type: LogicalType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A table-valued function; ``call`` yields row tuples.

    ``needs_context``: ``call`` takes the statement's runtime context (with
    ``.catalog``, ``.registry`` and ``.options``) first.
    """

    name: str
    call: Callable[..., Iterable[tuple[Value, ...]]]
    minimum: int
    maximum: int | None
    columns: tuple[ResultColumn, ...]
    deterministic: bool = True
    needs_context: bool = False


Function = ScalarFunction | AggregateFunction | TableFunction


class FunctionRegistry:
    """Functions by name and number of arguments."""

    def __init__(self, functions: Iterable[Function] = (), parent: FunctionRegistry | None = None) -> None:
        self._parent = parent
        self._functions: dict[str, list[Function]] = {}
        for function in functions:
            self.register(function)

    def register(self, function: Function) -> None:
        """Add a function; one of the same name and arity is replaced."""
        same_name = self._functions.setdefault(function.name.lower(), [])
        same_name[:] = [
            f for f in same_name if (f.minimum, f.maximum) != (function.minimum, function.maximum)
        ]
        same_name.append(function)

    def find(self, name: str, arguments: int) -> Function | None:
        """The function for a call: exact number of arguments first, then a range, then the parent."""
        candidates = self._functions.get(name.lower(), ())
        fitting = [
            f for f in candidates if f.minimum <= arguments and (f.maximum is None or arguments <= f.maximum)
        ]
        if fitting:
            return min(fitting, key=_width)
        return self._parent.find(name, arguments) if self._parent else None

    def knows(self, name: str) -> bool:
        """Whether any function has this name."""
        return name.lower() in self._functions or (self._parent is not None and self._parent.knows(name))

    def __iter__(self) -> Iterator[Function]:
        if self._parent:
            yield from self._parent
        for same_name in self._functions.values():
            yield from same_name


def _width(function: Function) -> float:
    if function.maximum is None:
        return float("inf")
    return function.maximum - function.minimum
