"""What reading and writing of Parquet files share: the library, and what a file says of its columns.

Parquet has fewer types than the database, so an exported file notes the declared type of each column
in the metadata of its Arrow field, and the key of the table in that of the schema.  Other programs pass over
these notes; an import makes the same table of them.

A column whose values are of several kinds, or do not fit the Arrow type (an integer past 64 bits, a
text that UTF-8 cannot spell), is *mixed*: texts of JSON, in which a blob is ``{"blob": "00ff"}`` and
a document ``{"json": …}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from quereus_store.cli.diagnostics import CommandError

TYPE = b"quereus:type"
ENCODING = b"quereus:encoding"
KEY = b"quereus:key"
MIXED = b"mixed"

_TYPE_NAME = re.compile(r"[a-z_][a-z0-9_]*(?:\([0-9]+(?:, ?[0-9]+)?\))?")


def load_pyarrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``.

    :raises CommandError: when they are not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CommandError(
            "Parquet files need the package pyarrow: pip install 'quereus-store[arrow]'"
        ) from None
    return pyarrow, pyarrow.parquet


def mixed_text(value: Any) -> str | None:
    """A value of a mixed column as text."""
    if value is None:
        return None
    if isinstance(value, bytes):
        value = {"blob": value.hex()}
    elif isinstance(value, (dict, list)):
        value = {"json": value}
    return json.dumps(value, separators=(",", ":"))


def mixed_value(text: str | None) -> Any:
    """The value that a text of a mixed column stands for."""
    if text is None:
        return None
    value = json.loads(text)
    match value:
        case {"blob": str(digits)}:
            return bytes.fromhex(digits)
        case {"json": document}:
            return document
        case dict() | list():
            raise ValueError(f"{text[:40]} is no value of a mixed column")
    return value


def noted_type(notes: Mapping[bytes, bytes]) -> str | None:
    """The declared type that a field's metadata names; a note that is no name of a type is none of ours."""
    name = notes.get(TYPE, b"").decode("utf-8", "replace").lower()
    return name if _TYPE_NAME.fullmatch(name) else None


def noted_key(notes: Mapping[bytes, bytes], names: Sequence[str]) -> tuple[str, ...]:
    """The key that a schema's metadata names, as far as the columns are there."""
    try:
        key = json.loads(notes.get(KEY, b"[]"))
    except ValueError:
        return ()
    fits = isinstance(key, list) and all(isinstance(name, str) and name in names for name in key)
    return tuple(key) if fits else ()
