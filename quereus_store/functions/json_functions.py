"""JSON functions: asking, making and changing documents (functions, section 7).

Documents are plain Python data, so most functions are a path lookup.  Paths are parsed once and kept.  Wrong
input gives NULL, not an error: invalid JSON, a path that is no text, an odd number of arguments.  A JSON null
at the top *is* SQL NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from quereus_store.functions.json_patch import apply_patch
from quereus_store.functions.json_schema import matches_schema
from quereus_store.functions.json_values import (
    INVALID,
    Reader,
    changed_at,
    drop,
    embed,
    keep_document,
    put,
    read_document,
    reader,
    steps_of,
    value_at,
)
from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.json import MISSING, render_json
from quereus_store.types.logical import ANY, BOOLEAN, INTEGER, JSON, TEXT, LogicalType
from quereus_store.types.values import Value

_TYPE_NAME: Mapping[type, str] = MappingProxyType(
    {type(None): "null", int: "integer", float: "real", str: "text", list: "array", dict: "object"}
)


def type_name(document: Any) -> str:
    """What ``json_type`` calls a document: ``null true false integer real text array object``."""
    if type(document) is bool:
        return "true" if document else "false"
    return _TYPE_NAME[type(document)]


def json_valid(read: Reader, value: Value) -> bool:
    """Whether a value is or spells JSON; false for NULL."""
    return value is not None and read(value) is not INVALID


def json_type(read: Reader, value: Value, path: Value = "$") -> str | None:
    """The type of the document or of the value at a path; NULL where there is none."""
    document = read(value)
    if document is INVALID:
        return None
    if type(path) is not str:
        return "null"
    found = value_at(document, path)
    return None if found is MISSING else type_name(found)


def json_extract(read: Reader, value: Value, *paths: Value) -> Value:
    """The value at the first path that exists; NULL when none does or a path is no text."""
    document = read(value)
    if document is INVALID:
        return None
    for path in paths:
        if type(path) is not str:
            return None
        found = value_at(document, path)
        if found is not MISSING:
            return found  # type: ignore[no-any-return]
    return None


def _extract_by_names(kind: LogicalType, paths: Sequence[Value]) -> Callable[[Value], Value] | None:
    """``json_extract`` of a document by one constant path of member names."""
    steps = steps_of(paths[0]) if len(paths) == 1 and type(paths[0]) is str else None
    if kind is not JSON or steps is None or not all(type(step) is str for step in steps):
        return None

    def extract(document: Any) -> Value:
        try:
            for step in steps:
                document = document[step]
        except (KeyError, TypeError):
            return None
        return document  # type: ignore[no-any-return]

    return extract


def json_array_length(read: Reader, value: Value, path: Value = "$") -> int | None:
    """The number of elements of an array; 0 for what is no array, NULL for invalid JSON."""
    document = read(value)
    if document is INVALID:
        return None
    found = value_at(document, path) if type(path) is str else MISSING
    return len(found) if type(found) is list else 0


def json_quote(value: Value) -> str | None:
    """The value as JSON source; NULL for what JSON lacks."""
    if type(value) is bytes or (type(value) is float and not math.isfinite(value)):
        return None
    return render_json(value)


def json_array(*values: Value) -> list[Any]:
    """An array of the arguments."""
    return list(map(embed, values))


def json_object(*members: Value) -> dict[str, Any] | None:
    """An object of keys and values in turn; NULL for an odd number or a key that is no text."""
    keys = members[::2]
    if len(members) % 2 or not all(type(key) is str for key in keys):
        return None
    return dict(zip(keys, map(embed, members[1::2]), strict=True))  # type: ignore[arg-type]


def _mutator(*, create: bool, overwrite: bool, pad: bool = False) -> Callable[..., Any]:
    """json_insert, json_replace and json_set: what they do at a place that is there, or is not."""

    def mutate(read: Reader, value: Value, *pairs: Value) -> Any:
        document = read(value)
        if document is INVALID or not pairs or len(pairs) % 2:
            return None
        for path, new in zip(pairs[::2], pairs[1::2], strict=True):
            if type(path) is not str:
                return None
            steps, new = steps_of(path), embed(new)
            if steps is None:
                continue
            if not steps:
                document = new if overwrite else document
                continue
            change = partial(put, value=new, create=create, overwrite=overwrite, pad=pad)
            document = changed_at(document, steps, change)
        return document

    return mutate


json_insert = _mutator(create=True, overwrite=False)
json_replace = _mutator(create=False, overwrite=True)
json_set = _mutator(create=True, overwrite=True, pad=True)


def json_remove(read: Reader, value: Value, *paths: Value) -> Any:
    """The document without the values at these paths."""
    document = read(value)
    if document is INVALID or not all(type(path) is str for path in paths):
        return None
    for path in paths:
        steps = steps_of(path)  # type: ignore[arg-type]
        if steps:
            document = changed_at(document, steps, drop)
    return document


def json_patch(read: Reader, value: Value, operations: Value) -> Any:
    """The document after an RFC 6902 patch; NULL when any operation cannot be done."""
    document, patch = read(value), read_document(operations)
    if document is INVALID or patch is INVALID:
        return None
    patched = apply_patch(document, patch)
    return None if patched is MISSING else patched


def json_schema(read: Reader, value: Value, definition: Value) -> bool:
    """Whether a document has the shape that a definition describes; false for wrong input."""
    document = read(value)
    if document is INVALID or type(definition) is not str:
        return False
    return matches_schema(document, definition)


def _reading(
    name: str,
    function: Callable[..., Any],
    minimum: int,
    maximum: int | None,
    returns: LogicalType,
    **options: Any,
) -> ScalarFunction:
    """A function whose first argument is a document; JSON-typed arguments are not parsed again."""
    from_text, from_json = partial(function, read_document), partial(function, keep_document)

    def specialize(types: Sequence[LogicalType]) -> Callable[..., Value]:
        return from_json if reader(types) is keep_document else from_text

    options.setdefault("null_propagates", False)
    return ScalarFunction(name, from_text, minimum, maximum, returns, specialize=specialize, **options)


def json_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        _reading("json_valid", json_valid, 1, 1, BOOLEAN, nullable=False),
        _reading("json_type", json_type, 1, 2, TEXT),
        _reading("json_extract", json_extract, 1, None, ANY, with_constants=_extract_by_names),
        _reading("json_array_length", json_array_length, 1, 2, INTEGER),
        ScalarFunction("json_quote", json_quote, 1, 1, TEXT, null_propagates=False),
        ScalarFunction("json_array", json_array, 0, None, JSON, nullable=False, null_propagates=False),
        ScalarFunction("json_object", json_object, 0, None, JSON, null_propagates=False),
        _reading("json_insert", json_insert, 1, None, JSON),
        _reading("json_replace", json_replace, 1, None, JSON),
        _reading("json_set", json_set, 1, None, JSON),
        _reading("json_remove", json_remove, 1, None, JSON),
        _reading("json_patch", json_patch, 2, 2, JSON),
        _reading("json_schema", json_schema, 2, 2, BOOLEAN, nullable=False),
    ]
