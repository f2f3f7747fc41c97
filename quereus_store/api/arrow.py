"""Results as Arrow tables, where ``pyarrow`` is installed.

Declared types become Arrow types; a column that may hold anything is left to
Arrow's inference, and becomes text where its values are mixed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types import to_text

if TYPE_CHECKING:
    from quereus_store.api.cursor import Cursor

ARROW_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "INTEGER": "int64",
        "REAL": "float64",
        "TEXT": "string",
        "BOOLEAN": "bool_",
        "BLOB": "binary",
        "JSON": "string",
    }
)
"""Names of the functions of ``pyarrow`` that make the Arrow type of a declared type."""


def arrow_table(cursor: Cursor) -> Any:
    """The rows that a cursor has left as a ``pyarrow.Table``; raises MISUSE without ``pyarrow``."""
    try:
        import pyarrow
    except ImportError as missing:
        raise sql_error(StatusCode.MISUSE, "Cursor.arrow() needs the package pyarrow") from missing
    columns = cursor.description or ()
    rows = cursor._plain_rows()
    data = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [_array(pyarrow, column[1], list(values)) for column, values in zip(columns, data, strict=True)]
    return pyarrow.table(arrays, names=[column[0] for column in columns])


def _array(pyarrow: Any, type_name: str, values: list[Any]) -> Any:
    declared = getattr(pyarrow, ARROW_TYPES[type_name])() if type_name in ARROW_TYPES else None
    if type_name == "JSON":
        texts = [None if value is None else json.dumps(value) for value in values]
        return pyarrow.array(texts, pyarrow.string())
    try:
        return pyarrow.array(values, declared)
    except (pyarrow.ArrowException, OverflowError, TypeError):
        return pyarrow.array([to_text(value) for value in values], pyarrow.string())
