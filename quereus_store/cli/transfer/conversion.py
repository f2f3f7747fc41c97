"""Turning the texts of a CSV file into the values of the table's columns.

The database itself reads numbers leniently (``'12ab'`` becomes 12), which would lose data silently
in an import.  So numbers, booleans and blobs are read here, strictly; every other type gets the text
and the database judges it.  Converters work on a whole column at a time; when one refuses, the
values are looked at one by one to name the culprits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

Converter = Callable[[str], Any]

_UTC_LENGTH = len("2013-01-31T05:00:00Z")
_BLOB = re.compile(r"[xX]'((?:[0-9a-fA-F]{2})*)'")
_BOOLEANS = MappingProxyType({"true": True, "false": False, "1": True, "0": False, "t": True, "f": False})


def _integer(text: str) -> int:
    if "_" in text:
        raise ValueError(text)
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if "_" in text or not math.isfinite(value):
        raise ValueError(text)
    return value


def _numeric(text: str) -> int | float:
    try:
        return _integer(text)
    except ValueError:
        return _real(text)


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise ValueError(text)
    return value


def _blob(text: str) -> bytes:
    match = _BLOB.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return bytes.fromhex(match.group(1))


def _utc(text: str) -> str:
    """The zone mark of a UTC time dropped: DATETIME means UTC, and canonical text needs no conversion."""
    return text[:-1] if text.endswith("Z") and len(text) == _UTC_LENGTH else text


#: Built-in types that read nearly all texts of a column rightly, and in C.
_READERS: Mapping[str, type[int] | type[float]] = MappingProxyType({"INTEGER": int, "REAL": float})

CONVERTERS: Mapping[str, Converter] = MappingProxyType(
    {
        "INTEGER": _integer,
        "REAL": _real,
        "NUMERIC": _numeric,
        "BOOLEAN": _boolean,
        "BLOB": _blob,
        "DATETIME": _utc,
    }
)


def convert_columns(
    rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[str]
) -> tuple[list[tuple[Any, ...]], list[int], list[tuple[int, str]]]:
    """Convert a batch to the declared types of its columns.

    :param rows: equally long rows; only texts are converted, other values stay.
    :param types: declared type names, upper case.
    :returns: the rows that converted, their indexes in the batch, and the others as
        ``(index, reason)``.
    """
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    refused: dict[int, str] = {}
    for position, (name, type_name) in enumerate(zip(names, types, strict=True)):
        converter = CONVERTERS.get(type_name)
        if converter is None or not columns:
            continue
        values = columns[position]
        try:
            columns[position] = _all_at_once(values, _READERS.get(type_name)) or [
                converter(v) if type(v) is str else v for v in values
            ]
        except ValueError:
            columns[position] = _one_by_one(values, converter, f"column {name!r}", type_name, refused)
    converted = list(zip(*columns, strict=True))
    if not refused:
        return converted, list(range(len(converted))), []
    kept = [index for index in range(len(converted)) if index not in refused]
    return [converted[index] for index in kept], kept, sorted(refused.items())


def _all_at_once(values: Sequence[Any], reader: type[int] | type[float] | None) -> list[Any] | None:
    """A column of texts and NULLs read in C; None when it holds what the built-ins read too freely."""
    has_nulls = None in values
    texts = [value for value in values if value is not None] if has_nulls else values
    if reader is None or set(map(type, texts)) != {str} or "_" in "".join(texts):
        return None
    numbers = list(map(reader, texts))
    if reader is float and not all(map(math.isfinite, numbers)):
        return None
    if not has_nulls:
        return numbers
    following = iter(numbers)
    return [None if value is None else next(following) for value in values]


def _one_by_one(
    values: Sequence[Any], converter: Converter, place: str, type_name: str, refused: dict[int, str]
) -> list[Any]:
    """Convert what can be; the others go to ``refused`` unless an earlier column refused them."""
    converted: list[Any] = []
    for index, value in enumerate(values):
        try:
            converted.append(converter(value) if type(value) is str else value)
        except ValueError:
            refused.setdefault(index, f"{place}: {value!r} is not {type_name}")
            converted.append(None)
    return converted
