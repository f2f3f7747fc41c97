"""Logical types: what a column declares and what an expression announces.

There is one object per type, compared by identity: ``column.type is INTEGER``.  A type says three things:

* its *physical class*, the shape of the Python values under it;
* the flags that drive comparison coercion and arithmetic: only INTEGER, REAL and NUMERIC are numeric, only
  TEXT is textual, so that BOOLEAN or TIMESTAMP never coerce;
* ``clean``, the Python classes that a write may store without looking at the value.

A type name in SQL is looked up by exact name, then alias, then by the first fragment it contains
(types-and-values, section 2); arguments in parentheses are ignored, an unknown name is ANY.  Programs add
their own types to a :class:`TypeRegistry`; such a type brings hooks where the built-in ones have tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType, NoneType
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.values import Value


class PhysicalType(Enum):
    """The shape of the Python values under a logical type."""

    NULL = "NULL"
    INTEGER = "INTEGER"
    REAL = "REAL"
    TEXT = "TEXT"
    BLOB = "BLOB"
    BOOLEAN = "BOOLEAN"
    OBJECT = "OBJECT"
    ANY = "ANY"


@dataclass(frozen=True, slots=True, eq=False)
class LogicalType:
    """A declared or announced type (types-and-values, section 2; hooks: section 18).

    The hooks are for registered types.  ``parse`` turns a written value into a stored one or raises
    ``ValueError`` with the reason; ``validate`` says whether a value may be stored; ``compare`` orders two
    non-NULL values (negative, 0, positive); ``key`` gives a hashable, ordered stand-in that agrees with
    ``compare``; ``serialize`` renders a value as text.
    """

    name: str
    physical: PhysicalType
    is_numeric: bool = False
    is_textual: bool = False
    is_temporal: bool = False
    clean: frozenset[type] = frozenset()
    parse: Callable[[Value], Value] | None = field(default=None, repr=False)
    validate: Callable[[Value], bool] | None = field(default=None, repr=False)
    compare: Callable[[Any, Any], int] | None = field(default=None, repr=False)
    key: Callable[[Any], Hashable] | None = field(default=None, repr=False)
    serialize: Callable[[Any], str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.name

    def __copy__(self) -> LogicalType:
        return self

    def __deepcopy__(self, memo: object) -> LogicalType:
        return self


def _clean(*classes: type) -> frozenset[type]:
    return frozenset((NoneType, *classes))


_EVERY_CLASS = _clean(bool, int, float, str, bytes, list, dict)

INTEGER = LogicalType("INTEGER", PhysicalType.INTEGER, is_numeric=True, clean=_clean(int))
REAL = LogicalType("REAL", PhysicalType.REAL, is_numeric=True, clean=_clean(float))
NUMERIC = LogicalType("NUMERIC", PhysicalType.REAL, is_numeric=True, clean=_clean(int, float))
TEXT = LogicalType("TEXT", PhysicalType.TEXT, is_textual=True, clean=_clean(str))
BOOLEAN = LogicalType("BOOLEAN", PhysicalType.BOOLEAN, clean=_clean(bool))
BLOB = LogicalType("BLOB", PhysicalType.BLOB, clean=_clean(bytes))
DATE = LogicalType("DATE", PhysicalType.TEXT, is_temporal=True, clean=_clean())
TIME = LogicalType("TIME", PhysicalType.TEXT, is_temporal=True, clean=_clean())
DATETIME = LogicalType("DATETIME", PhysicalType.TEXT, is_temporal=True, clean=_clean())
TIMESPAN = LogicalType("TIMESPAN", PhysicalType.TEXT, is_temporal=True, clean=_clean())
TIMESTAMP = LogicalType("TIMESTAMP", PhysicalType.INTEGER, is_temporal=True, clean=_clean(int))
JSON = LogicalType("JSON", PhysicalType.OBJECT, clean=_EVERY_CLASS - {str, bytes})
ANY = LogicalType("ANY", PhysicalType.ANY, clean=_EVERY_CLASS)
NULL = LogicalType("NULL", PhysicalType.NULL, clean=_clean())

BUILT_IN_TYPES: tuple[LogicalType, ...] = (
    INTEGER,
    REAL,
    NUMERIC,
    TEXT,
    BOOLEAN,
    BLOB,
    DATE,
    TIME,
    DATETIME,
    TIMESPAN,
    TIMESTAMP,
    JSON,
    ANY,
)

_ALIASES: Mapping[LogicalType, str] = MappingProxyType(
    {
        INTEGER: "INT BIGINT SMALLINT TINYINT MEDIUMINT",
        REAL: "FLOAT DOUBLE",
        NUMERIC: "DECIMAL",
        TEXT: "VARCHAR CHAR CHARACTER CLOB STRING",
        BOOLEAN: "BOOL",
        BLOB: "BYTES BINARY VARBINARY",
        TIMESPAN: "INTERVAL DURATION",
    }
)

_BY_NAME: Mapping[str, LogicalType] = MappingProxyType(
    {
        **{logical_type.name: logical_type for logical_type in BUILT_IN_TYPES},
        **{alias: logical_type for logical_type, aliases in _ALIASES.items() for alias in aliases.split()},
    }
)

_BY_FRAGMENT: tuple[tuple[str, LogicalType], ...] = (
    ("INT", INTEGER),
    ("CHAR", TEXT),
    ("CLOB", TEXT),
    ("TEXT", TEXT),
    ("BLOB", BLOB),
    ("REAL", REAL),
    ("FLOA", REAL),
    ("DOUB", REAL),
    ("BOOL", BOOLEAN),
    ("NUMERIC", NUMERIC),
    ("DECIMAL", NUMERIC),
)


def _bare(name: str) -> str:
    bare = name.partition("(")[0].strip().upper()
    return bare.removesuffix(" WITH TIME ZONE").removesuffix(" WITHOUT TIME ZONE")


def type_from_name(name: str | None) -> LogicalType:
    """Resolve a type name as written (any case, arguments in parentheses ignored); no name is ANY."""
    if not name:
        return ANY
    bare = _bare(name)
    found = _BY_NAME.get(bare)
    if found is not None:
        return found
    return next((logical_type for fragment, logical_type in _BY_FRAGMENT if fragment in bare), ANY)


_TYPE_OF_CLASS: Mapping[type, LogicalType] = MappingProxyType(
    {
        NoneType: NULL,
        bool: BOOLEAN,
        int: INTEGER,
        float: REAL,
        str: TEXT,
        bytes: BLOB,
        list: JSON,
        dict: JSON,
    }
)


def type_of_value(value: Value) -> LogicalType:
    """The type that a literal or a bound parameter announces (types-and-values, sections 16 and 17)."""
    return _TYPE_OF_CLASS[type(value)]


def physical_type_of(value: Value) -> PhysicalType:
    """The physical class of a value, as parameter type checks name it."""
    return _TYPE_OF_CLASS[type(value)].physical


class TypeRegistry:
    """The types that a database knows: the built-in ones and those a program registered."""

    def __init__(self) -> None:
        self._registered: dict[str, LogicalType] = {}

    def register(self, logical_type: LogicalType) -> None:
        """Add a type under its name (any case); built-in names and aliases cannot be taken (MISUSE)."""
        name = logical_type.name.strip().upper()
        if not name:
            raise sql_error(StatusCode.MISUSE, "registerType: name must be a non-empty string")
        if name in _BY_NAME or name == "NULL":
            raise sql_error(StatusCode.MISUSE, f"registerType: {name} cannot be overridden")
        self._registered[name] = logical_type

    def resolve(self, name: str | None) -> LogicalType:
        """Like :func:`type_from_name`, with registered types found by exact name first."""
        if name and self._registered:
            found = self._registered.get(_bare(name))
            if found is not None:
                return found
        return type_from_name(name)

    def registered(self) -> Mapping[str, LogicalType]:
        """The registered types by upper-case name."""
        return MappingProxyType(self._registered)
