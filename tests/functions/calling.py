"""Calls of functions as a statement makes them: by name, with NULL propagation, failures named."""

from __future__ import annotations

from typing import Any

from quereus_store.functions.builtins import builtin_functions
from quereus_store.functions.registry import (
    AggregateFunction,
    ScalarFunction,
    TableFunction,
    guarded,
    guarded_rows,
)
from quereus_store.types.logical import LogicalType, type_of_value


def scalar(name: str, *arguments: Any, types: list[LogicalType] | None = None) -> Any:
    """The value of ``name(arguments)``; ``types`` are the static types, by default those of the values."""
    function = builtin_functions().find(name, len(arguments))
    assert isinstance(function, ScalarFunction), f"Function not found: {name}/{len(arguments)}"
    static = types or [type_of_value(argument) for argument in arguments]
    if function.check is not None:
        function.check(static)
    if function.null_propagates and None in arguments:
        return None
    value = guarded(function, types=static)(*arguments)
    assert value is not None or function.nullable, f"{name} gave NULL but declares that it does not"
    template = (function.inline or {}).get(tuple(item.name for item in static))
    if template is not None and None not in arguments:
        inlined = eval(template.format(*map(repr, arguments)))
        assert (type(inlined), inlined) == (type(value), value), f"{name} differs from its inline form"
    return value


def aggregate(name: str, *columns: list[Any]) -> Any:
    """The value of an aggregate over columns, NULLs left out where it skips them."""
    function = builtin_functions().find(name, len(columns))
    assert isinstance(function, AggregateFunction)
    rows = list(zip(*columns, strict=True))
    if function.skips_nulls:
        rows = [row for row in rows if row[0] is not None]
    kept = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in columns]
    return function.evaluate(*kept)


def rows(name: str, *arguments: Any) -> list[tuple[Any, ...]]:
    """The rows of a table function."""
    function = builtin_functions().find(name, len(arguments))
    assert isinstance(function, TableFunction)
    return list(guarded_rows(function)(*arguments))
