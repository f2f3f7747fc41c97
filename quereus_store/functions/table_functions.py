"""Table functions over values: series, split text, the members of a JSON document (functions, section 10).

``json_each`` shows the children of one container, ``json_tree`` walks a whole document in pre-order.
Members of objects come sorted by name.  Their own paths have no ``$``: the root is the empty text, a place
reads ``.a[0].b``; and the start path is split at dots only, so that ``$.a.[1]`` is an element and
``$.a[1]`` is a name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, takewhile
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.functions.arguments import Number, number_of
from quereus_store.functions.json_functions import type_name
from quereus_store.functions.json_values import INVALID, Reader, read_document, reader
from quereus_store.functions.registry import Function, ResultColumn, TableFunction
from quereus_store.types.json import MISSING, follow_json_path, render_json
from quereus_store.types.logical import ANY, INTEGER, TEXT, LogicalType
from quereus_store.types.values import Value, int_from_text

_Row = tuple[Value, ...]


# --- series and text ----------------------------------------------------------------------------------------


def generate_series(start: Value, stop: Value, step: Value = 1) -> Iterable[_Row]:
    """Numbers from ``start`` to ``stop`` inclusive; NULL bounds are 0, a step of 0 or NULL gives no rows."""
    bounds = [number_of(0 if bound is None else bound) for bound in (start, stop)]
    first, last = bounds
    by = number_of(step)
    if first is None or last is None or not by or not all(map(_is_finite, (first, last, by))):
        return ()
    if type(first) is int and type(by) is int:
        last = math.floor(last) + 1 if by > 0 else math.ceil(last) - 1
        return zip(range(first, last, by), strict=True)
    return _steps(first, last, by)


def _is_finite(number: Number) -> bool:
    return type(number) is int or math.isfinite(number)


def _steps(first: Number, last: Number, by: Number) -> Iterator[_Row]:
    within: Callable[[Number], bool] = (lambda n: n <= last) if by > 0 else (lambda n: n >= last)
    return ((number,) for number in takewhile(within, _multiples(first, by)))


def _multiples(first: Number, by: Number) -> Iterator[Number]:
    """``first`` plus each multiple of ``by``; ends where a float cannot follow an integer."""
    try:
        for turn in count():
            yield first + by * turn
    except OverflowError:
        return


def split_string(value: Value, separator: Value) -> Iterable[_Row]:
    """The parts of a text and their numbers from 0; an empty separator splits into characters."""
    if type(value) is not str or type(separator) is not str:
        return ()
    parts = value.split(separator) if separator else list(value)
    return zip(parts, count(), strict=False)


# --- JSON documents -----------------------------------------------------------------------------------------

_CONTAINERS = (dict, list)


def _start(name: str, read: Reader, arguments: Sequence[Value]) -> Any:
    """The document at the start path, or ``MISSING``; raises ERROR for wrong arguments."""
    if not 1 <= len(arguments) <= 2:
        message = f"Error: {name} requires 1 or 2 arguments (jsonSource, [rootPath])"
        raise sql_error(StatusCode.ERROR, message)
    document = read(arguments[0])
    if document is INVALID:
        raise sql_error(StatusCode.ERROR, f"Error: Invalid JSON provided to {name}")
    path = arguments[1] if len(arguments) > 1 else None
    return follow_json_path(document, _start_steps(path)) if type(path) is str else document


def _start_steps(path: str) -> tuple[str | int, ...]:
    parts = path.removeprefix("$").removeprefix(".")
    if not parts:
        return ()
    return tuple(
        int_from_text(part[1:-1]) if re.fullmatch(r"\[[0-9]+\]", part) else part for part in parts.split(".")
    )


def _children(document: Any) -> Iterable[tuple[Value, Any, str]]:
    """Key, value and place of each child of a container."""
    if type(document) is dict:
        return [(name, document[name], f".{name}") for name in sorted(document)]
    return [(index, item, f"[{index}]") for index, item in enumerate(document)]


def _cells(document: Any) -> tuple[Value, str, Value]:
    """value, type and atom of a document."""
    if type(document) in _CONTAINERS:
        return render_json(document), type_name(document), None
    return document, type_name(document), document


def json_each(read: Reader, *arguments: Value) -> Iterator[_Row]:
    """One row per child of the container at the start path; one row for a scalar."""
    document = _start("json_each", read, arguments)
    if document is MISSING:
        return
    if type(document) not in _CONTAINERS:
        yield (None, *_cells(document), 0, None, "", "")
        return
    for number, (key, child, place) in enumerate(_children(document)):
        yield (key, *_cells(child), number, None, place, "")


def json_tree(read: Reader, *arguments: Value) -> Iterator[_Row]:
    """One row per value of the document at the start path, containers before what is in them."""
    document = _start("json_tree", read, arguments)
    if document is MISSING:
        return
    numbers = count(1)
    # (key, value, number of the parent, place, place of the parent), the next one last.
    waiting: list[tuple[Value, Any, int, str, str]] = [(None, document, 0, "", "")]
    while waiting:
        key, current, parent, place, path = waiting.pop()
        number = next(numbers)
        yield (key, *_cells(current), number, parent, place, path)
        if type(current) in _CONTAINERS:
            children = [(k, child, number, place + step, place) for k, child, step in _children(current)]
            waiting.extend(reversed(children))


_JSON_COLUMNS = (
    ResultColumn("key", ANY),
    ResultColumn("value", ANY),
    ResultColumn("type", TEXT, nullable=False),
    ResultColumn("atom", ANY),
    ResultColumn("id", INTEGER, nullable=False),
    ResultColumn("parent", INTEGER),
    ResultColumn("fullkey", TEXT, nullable=False),
    ResultColumn("path", TEXT, nullable=False),
)


def _over_documents(name: str, rows: Callable[..., Iterator[_Row]]) -> TableFunction:
    def specialize(types: Sequence[LogicalType]) -> Callable[..., Iterator[_Row]]:
        return partial(rows, reader(types))

    return TableFunction(name, partial(rows, read_document), 0, None, _JSON_COLUMNS, specialize=specialize)


def table_functions() -> list[Function]:
    """The whole family, ready to register."""
    series = (ResultColumn("value", INTEGER, nullable=False),)
    parts = (ResultColumn("value", TEXT, nullable=False), ResultColumn("ordinal", INTEGER, nullable=False))
    return [
        TableFunction("generate_series", generate_series, 2, 3, series),
        TableFunction("split_string", split_string, 2, 2, parts),
        _over_documents("json_each", json_each),
        _over_documents("json_tree", json_tree),
    ]
