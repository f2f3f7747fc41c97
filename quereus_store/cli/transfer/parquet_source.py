"""Reading Parquet files, a part of a row group at a time.

Arrow types become declared types:

    integers of all widths              INTEGER
    floats of all widths                REAL
    decimals                            INTEGER without decimal places; NUMERIC up to 15 digits, which a float
                                        holds exactly enough to give them back; TEXT beyond
    bool, strings, binaries             BOOLEAN, TEXT, BLOB
    dates, times, timestamps            DATE, TIME, DATETIME (UTC where the file names a zone)
    durations                           TIMESPAN
    lists, structs, maps                JSON
    dictionaries                        as their values

A file of ``quereus export`` says itself which types its columns had (``parquet_format``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.transfer.formats import check_names
from quereus_store.cli.transfer.parquet_format import (
    ENCODING,
    MIXED,
    load_pyarrow,
    mixed_value,
    noted_key,
    noted_type,
)
from quereus_store.cli.transfer.reading import BATCH_ROWS, Batch

Read = Callable[[Any], list[Any]]
"""The values of an Arrow array."""

_EXACT_DIGITS = 15
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """A column of the file: the type it has in a table, whether it may be NULL, how its values are read."""

    type_name: str
    nullable: bool
    read: Read


class ParquetSource:
    """A Parquet file.  Its size is counted in rows.

    :raises CommandError: without ``pyarrow``, when the file cannot be read, has no columns, repeats a
        name or holds a type that has no counterpart.
    """

    place = "row"

    def __init__(self, path: Path, *, title: str = "") -> None:
        self._path = path
        self._title = title or str(path)
        self._pyarrow, self._parquet = load_pyarrow()
        with self._opened() as file:
            self.size: int = file.metadata.num_rows
            schema = file.schema_arrow
            self.names: list[str] = list(schema.names)
            if not self.names:
                raise CommandError(f"{self._title}: the file has no columns")
            check_names(self._title, self.names, "the file")
            statistics = _statistics(file)
            self.key = noted_key(schema.metadata or {}, self.names)
            self.declared = [self._column(field, statistics.get(field.name, [])) for field in schema]

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The rows in batches, each with the number of rows read so far."""
        done = 0
        with self._opened() as file:
            for part in file.iter_batches(batch_size=BATCH_ROWS):
                columns = [column.read(part.column(i)) for i, column in enumerate(self.declared)]
                rows = list(map(list, zip(*columns, strict=True)))
                lines = list(range(done + 1, done + len(rows) + 1))
                done += len(rows)
                yield done, Batch(rows, lines)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """The open file; whatever the library refuses in it becomes a :class:`CommandError`."""
        try:
            with self._path.open("rb") as stream:
                yield self._parquet.ParquetFile(stream)
        except (self._pyarrow.ArrowException, OSError, UnicodeDecodeError, ValueError) as error:
            if isinstance(error, OSError) and error.filename:
                raise
            raise CommandError(
                f"{self._title}: cannot be read as a Parquet file: {_first_line(error)}"
            ) from None

    def _column(self, field: Any, statistics: list[Any]) -> ParquetColumn:
        notes = field.metadata or {}
        noted = noted_type(notes)
        nullable = field.nullable
        # A file with a key is a table's and knows; of others, the values tell.
        if not self.key and statistics and all(known.has_null_count for known in statistics):
            nullable = nullable and any(known.null_count for known in statistics)
        found = _reading(self._pyarrow, field.type, statistics)
        if found is None:
            raise CommandError(f"{self._title}: column {field.name!r}: {field.type} has no counterpart here")
        type_name, read = found
        if noted is not None and notes.get(ENCODING) == MIXED and self._pyarrow.types.is_string(field.type):
            return ParquetColumn(noted, nullable, lambda array: list(map(mixed_value, array.to_pylist())))
        return ParquetColumn(noted or type_name, nullable, read)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _statistics(file: Any) -> dict[str, list[Any]]:
    """By column that is not nested: its statistics in all row groups, or nothing if one has none."""
    found: dict[str, list[Any]] = {}
    metadata = file.metadata
    for position in range(metadata.num_columns):
        known = [
            metadata.row_group(group).column(position).statistics for group in range(metadata.num_row_groups)
        ]
        if all(item is not None for item in known):
            found[file.schema.column(position).path] = known
    return found


def _reading(pyarrow: Any, arrow_type: Any, statistics: list[Any]) -> tuple[str, Read] | None:
    """The declared type for an Arrow type and how its values are read; None where there is none."""
    kinds = pyarrow.types
    if isinstance(arrow_type, pyarrow.BaseExtensionType):
        storage = _reading(pyarrow, arrow_type.storage_type, statistics)
        return storage and (storage[0], lambda array: storage[1](array.storage))
    if kinds.is_dictionary(arrow_type):
        values = _reading(pyarrow, arrow_type.value_type, statistics)
        return values and (values[0], lambda array: values[1](array.dictionary_decode()))
    if kinds.is_decimal(arrow_type):
        return _decimal_reading(arrow_type, statistics)
    if kinds.is_duration(arrow_type):
        places = _UNITS[arrow_type.unit]
        return "timespan", lambda array: [
            None if value is None else _timespan(value, places)
            for value in array.cast(pyarrow.int64()).to_pylist()
        ]
    if kinds.is_timestamp(arrow_type):
        # A view without the zone is the same instant in UTC.
        plain = pyarrow.timestamp(arrow_type.unit)
        return "datetime", lambda array: array.view(plain).cast(pyarrow.string()).to_pylist()
    if kinds.is_nested(arrow_type):
        return "json", lambda array: [_plain(value, arrow_type, kinds) for value in array.to_pylist()]
    for test, type_name, via in (
        (kinds.is_boolean, "boolean", None),
        (kinds.is_integer, "integer", None),
        (kinds.is_floating, "real", pyarrow.float64()),
        (kinds.is_date, "date", pyarrow.string()),
        (kinds.is_time, "time", pyarrow.string()),
        (kinds.is_string, "text", None),
        (kinds.is_large_string, "text", None),
        (kinds.is_binary, "blob", None),
        (kinds.is_large_binary, "blob", None),
        (kinds.is_fixed_size_binary, "blob", None),
        (kinds.is_null, "text", None),
    ):
        if test(arrow_type):
            return type_name, _cast(via)
    return None


def _cast(via: Any) -> Read:
    if via is None:
        return lambda array: array.to_pylist()
    return lambda array: array.cast(via).to_pylist()


def _decimal_reading(arrow_type: Any, statistics: list[Any]) -> tuple[str, Read]:
    scale = arrow_type.scale
    if scale <= 0:
        return "integer", lambda array: [None if v is None else int(v) for v in array.to_pylist()]
    digits = arrow_type.precision
    if statistics and all(known.has_min_max for known in statistics):
        bounds = [abs(bound) for known in statistics for bound in (known.min, known.max)]
        digits = min(digits, len(str(int(max(bounds).scaleb(scale)))))
    if digits <= _EXACT_DIGITS:
        return "numeric", lambda array: [None if v is None else float(v) for v in array.to_pylist()]
    return "text", lambda array: [None if v is None else format(v, "f") for v in array.to_pylist()]


def _timespan(value: int, places: int) -> str:
    """A count of seconds, or of their thousandths, millionths …, in the notation of ISO 8601."""
    seconds, rest = divmod(abs(value), 10**places)
    fraction = f".{rest:0{places}}" if rest else ""
    return f"{'-' if value < 0 else ''}PT{seconds}{fraction}S"


def _plain(value: Any, arrow_type: Any, kinds: Any) -> Any:
    """A nested value as a JSON document: what JSON lacks becomes text, maps with texts for keys objects."""
    if value is None:
        return None
    if kinds.is_struct(arrow_type):
        fields = (arrow_type.field(i) for i in range(arrow_type.num_fields))
        return {field.name: _plain(value[field.name], field.type, kinds) for field in fields}
    if kinds.is_map(arrow_type):
        pairs = [
            (_plain(key, arrow_type.key_type, kinds), _plain(item, arrow_type.item_type, kinds))
            for key, item in value
        ]
        named = all(isinstance(key, str) for key, _item in pairs)
        return dict(pairs) if named else [list(pair) for pair in pairs]
    if isinstance(value, list):
        return [_plain(item, arrow_type.value_type, kinds) for item in value]
    if isinstance(value, Decimal):
        whole = value == value.to_integral_value()
        return int(value) if whole else float(value) if len(value.as_tuple().digits) <= 15 else str(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, timedelta):
        return _timespan(value // timedelta(microseconds=1), 6)
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    return value
