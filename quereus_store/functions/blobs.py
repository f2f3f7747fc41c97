"""Blobs, random values and what a function can ask of the running statement (functions, sections 3 and 4)."""

from __future__ import annotations

import os
import random
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.functions.arguments import check_size, whole_number_of
from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.conversion import strict_convert
from quereus_store.types.logical import BLOB, INTEGER, TEXT
from quereus_store.types.values import SAFE_INTEGER, Value

_LARGEST_RANDOM_BLOB = 1 << 20


def to_hex(value: Value) -> str:
    """Upper-case hex digits of the bytes that ``blob(value)`` gives."""
    if type(value) is bytes:
        return value.hex().upper()
    try:
        data: Any = strict_convert(value, BLOB)
    except Error as error:
        reason = error.message.removeprefix("Cannot convert to BLOB: ")
        raise sql_error(StatusCode.MISMATCH, f"Cannot convert to BLOB for hex(): {reason}") from error
    return str(data.hex().upper())


def from_hex(value: Value) -> bytes | None:
    """The bytes that a text of an even number of hex digits spells; NULL for everything else."""
    if type(value) is not str or not value.isascii() or not (value.isalnum() or not value):
        return None
    try:
        return bytes.fromhex(value)
    except ValueError:
        return None


def zero_blob(count: Value) -> bytes | None:
    """A blob of that many zero bytes."""
    size = whole_number_of(count)
    return None if size is None else bytes(check_size(max(size, 0)))


def random_integer() -> int:
    """A uniform integer that a double holds exactly, fresh for every call."""
    return random.randint(-SAFE_INTEGER, SAFE_INTEGER)


def random_blob(count: Value) -> bytes | None:
    """That many random bytes, at most a mebibyte; none for a fraction or a number below 1."""
    if type(count) is float and count.is_integer():
        count = int(count)
    if type(count) is float:
        return b""
    if type(count) is not int:
        return None
    return os.urandom(min(max(count, 0), _LARGEST_RANDOM_BLOB))


def mutation_ordinal(context: Any) -> int:
    """The 1-based ordinal of the row being inserted: the context's ``mutation_ordinal``.

    Raises ERROR outside of the defaults and the mutation context of an INSERT.
    """
    ordinal = getattr(context, "mutation_ordinal", None)
    if ordinal is None:
        raise sql_error(
            StatusCode.ERROR,
            "mutation_ordinal() is only valid during INSERT default / mutation-context evaluation",
        )
    return int(ordinal)


def changes(context: Any) -> int:
    """The number of rows that the last completed statement changed: the context's ``changes``."""
    return int(context.changes)


def blob_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        ScalarFunction(
            "hex", to_hex, 1, 1, TEXT, nullable=False, raises=True, inline={("BLOB",): "{0}.hex().upper()"}
        ),
        ScalarFunction("unhex", from_hex, 1, 1, BLOB),
        ScalarFunction("zeroblob", zero_blob, 1, 1, BLOB, raises=True),
        ScalarFunction("random", random_integer, 0, 0, INTEGER, nullable=False, deterministic=False),
        ScalarFunction("randomblob", random_blob, 1, 1, BLOB, deterministic=False),
        ScalarFunction(
            "mutation_ordinal", mutation_ordinal, 0, 0, INTEGER, nullable=False, needs_context=True
        ),
        ScalarFunction(
            "changes", changes, 0, 0, INTEGER, nullable=False, needs_context=True, deterministic=False
        ),
    ]
