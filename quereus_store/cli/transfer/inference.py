"""Finding the declared type of a column from its values.

Each type is a test over a set of distinct values; the candidates are tried from the narrowest on, a
column keeps those that every batch passed, and the first one left is its type:

    INTEGER   12, -7, 0            (not 007: a leading zero is an identifier, kept as text)
    REAL      1.5, 2e3, and integers among such
    BOOLEAN   true, false in any case
    DATE      2013-01-31
    DATETIME  2013-01-31T05:00:00, with or without zone; a blank for the T
    TIME      05:00, 05:00:00
    JSON      objects and arrays   (JSON lines only)
    TEXT      everything else that is text
    ANY       values of several kinds (JSON lines only)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from types import MappingProxyType
from typing import Any

Test = Callable[[Any], object]

_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE = r"(?:Z|[+-][0-9]{2}:[0-9]{2})"

_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CODE = re.compile(r"[+-]?0[0-9]+")
_DATE = re.compile(_DAY)
_TIME = re.compile(_CLOCK)
_DATETIME = re.compile(f"{_DAY}[T ]{_CLOCK}{_ZONE}?")


def _is_real(value: str) -> bool:
    return _REAL.fullmatch(value) is not None and _CODE.fullmatch(value) is None


def _parses(pattern: re.Pattern[str], parse: Callable[[str], object]) -> Callable[[str], bool]:
    def test(value: str) -> bool:
        if pattern.fullmatch(value) is None:
            return False
        try:
            parse(value)
        except ValueError:
            return False
        return True

    return test


_TEXT_TESTS: Mapping[str, Test] = MappingProxyType(
    {
        "integer": _INTEGER.fullmatch,
        "real": _is_real,
        "boolean": lambda value: value.lower() in ("true", "false"),
        "date": _parses(_DATE, date.fromisoformat),
        "datetime": _parses(_DATETIME, datetime.fromisoformat),
        "time": _parses(_TIME, time.fromisoformat),
        "text": lambda value: True,
    }
)

_TYPE_OF_KIND: Mapping[frozenset[type], str] = MappingProxyType(
    {
        frozenset({int}): "integer",
        frozenset({float}): "real",
        frozenset({int, float}): "real",
        frozenset({bool}): "boolean",
        frozenset({dict}): "json",
        frozenset({list}): "json",
        frozenset({dict, list}): "json",
    }
)


class ColumnInference:
    """What is known of one column: the types that still fit, and whether a NULL was seen."""

    def __init__(self) -> None:
        self.nullable = False
        self._kinds: set[type] = set()
        self._candidates = list(_TEXT_TESTS)

    def observe(self, values: Sequence[Any]) -> None:
        """Take another batch of the column's values."""
        kinds = set(map(type, values))
        if type(None) in kinds:
            self.nullable = True
            kinds.discard(type(None))
        self._kinds |= kinds
        if kinds == {str}:
            texts = set(values) - {None}
            self._candidates = [name for name in self._candidates if all(map(_TEXT_TESTS[name], texts))]

    @property
    def type_name(self) -> str:
        """The narrowest type that holds every value observed; TEXT when there was none."""
        if self._kinds <= {str}:
            return self._candidates[0] if self._kinds else "text"
        return _TYPE_OF_KIND.get(frozenset(self._kinds), "any")


def infer_columns(width: int, batches: Iterable[Sequence[Sequence[Any]]]) -> list[ColumnInference]:
    """Infer the columns of a source from all its rows.

    :param width: number of columns.
    :param batches: lists of rows.
    """
    columns = [ColumnInference() for _ in range(width)]
    for rows in batches:
        for column, values in zip(columns, zip(*rows, strict=True), strict=False):
            column.observe(values)
    return columns
