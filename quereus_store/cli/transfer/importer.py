"""Loading a file into a table.

An import is one transaction: an interruption or an unexpected error leaves the table as it was.
Batches go in by ``executemany``, each under a savepoint; when the table refuses a batch, it is
halved until the refused rows stand alone, so one bad row among 5,000 costs a dozen retries.

A missing table is created: column types are inferred from all values, a column is ``null`` where a
NULL was seen, and the key is the first of

1. the column that ``key`` names,
2. the key that the file itself names, as Parquet files of an export do, else a column called ``id`` or
   ``TABLE_id`` without NULLs and duplicates,
3. a new column that numbers the rows of the file (``row_id``), since the dialect would otherwise
   take the whole row for the key and refuse true duplicates.

A later file without that column goes on counting after the rows that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quereus_store.cli.diagnostics import CommandError, describe
from quereus_store.cli.names import quote, quote_qualified, split_qualified
from quereus_store.cli.transfer.conversion import convert_columns
from quereus_store.cli.transfer.csv_source import CsvSource
from quereus_store.cli.transfer.formats import JSON, JSON_LINES, PARQUET, STANDARD, Format, format_of
from quereus_store.cli.transfer.inference import infer_columns
from quereus_store.cli.transfer.json_source import JsonArraySource, is_array
from quereus_store.cli.transfer.jsonl_source import JsonLinesSource
from quereus_store.cli.transfer.parquet_source import ParquetSource
from quereus_store.cli.transfer.reading import Batch, Column, Rejected, Source, readable_again
from quereus_store.cli.transfer.rejects import RejectsFile
from quereus_store.errors import DatabaseError, DataError, Error, IntegrityError, StatusCode

if TYPE_CHECKING:
    from quereus_store import Connection

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of the file is done and its size."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to read the file and, when the table is missing, how to key it."""

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    nulls: tuple[str, ...] = ("",)
    key: tuple[str, ...] = ()
    rejects: Path | None = None


@dataclass(slots=True)
class ImportReport:
    """What an import did."""

    table: str
    rows: int = 0
    created: str | None = None
    rejected: int = 0
    rejects: Path | None = None
    place: str = "line"
    first_rejected: list[Rejected] = field(default_factory=list)

    def summary(self) -> str:
        """The report in words, one fact a line."""
        lines = [f"{self.rows:,} rows into {self.table}"]
        if self.created:
            lines.insert(0, self.created + ";")
        if self.rejected:
            lines.append(f"{self.rejected:,} rows rejected, see {self.rejects}")
            lines += [f"  {self.place} {row.line}: {row.reason}" for row in self.first_rejected]
            if self.rejected > len(self.first_rejected):
                lines.append("  …")
        return "\n".join(lines)


def open_source(path: Path, title: str, kind: Format, options: ImportOptions) -> Source:
    """The reader for a file.

    :param title: what messages call the file.
    :raises CommandError: for an unusable file.
    """
    encoding = options.encoding
    if kind is PARQUET:
        return ParquetSource(path, title=title)
    if kind is JSON and is_array(path, encoding):
        return JsonArraySource(path, title=title, encoding=encoding)
    if kind in (JSON, JSON_LINES):
        return JsonLinesSource(path, title=title, encoding=encoding)
    # A name like .tsv is a hint only; the header tells better, unless the format was given in words.
    delimiter = options.delimiter or (kind.delimiter if options.format else None)
    return CsvSource(path, title=title, encoding=encoding, delimiter=delimiter, nulls=options.nulls)


def rejects_path(table: str, path: Path, kind: Format, options: ImportOptions) -> Path:
    """The file for refused rows: beside the data, or in the current folder if the data has no place."""
    if options.rejects is not None:
        return options.rejects
    suffix = path.suffix
    if kind in (JSON, PARQUET) or not suffix:
        suffix = (JSON_LINES if kind in (JSON, PARQUET) else kind).suffixes[0]
    if path == STANDARD or not path.is_file():
        return Path(f"{table}.rejected{suffix}")
    return path.with_name(f"{path.stem}.rejected{suffix}")


def import_file(
    connection: Connection,
    table: str,
    path: Path,
    options: ImportOptions | None = None,
    progress: Progress = lambda what, done, total: None,
) -> ImportReport:
    """Load a CSV, JSON or Parquet file into a table, which is created when missing.

    :param table: ``name`` or ``schema.name``.
    :returns: the report; refused rows are in its ``rejects`` file.
    :raises CommandError: when the file or the columns do not fit as a whole.
    :raises quereus_store.Error: for any failure that is not the fault of single rows.
    """
    options = options or ImportOptions()
    kind = format_of(path, options.format)
    with readable_again(path) as (file, title):
        source = open_source(file, title, kind, options)
        rejects = rejects_path(table, path, kind, options)
        json_lines = kind in (JSON, JSON_LINES, PARQUET)
        with RejectsFile(rejects, source.names, json_lines=json_lines) as refused:
            return _load(connection, table, source, options.key, refused, progress)


def _load(
    connection: Connection,
    table: str,
    source: Source,
    key: Sequence[str],
    refused: RejectsFile,
    progress: Progress,
) -> ImportReport:
    """Make the table where it is missing and insert all rows, in one transaction."""
    report = ImportReport(table, place=source.place)
    with connection.transaction():
        types = table_types(connection, table)
        if types is None:
            report.created = create_table(connection, table, source, key, progress)
            types = table_types(connection, table)
            assert types is not None, "the table was just created"
        number = numbering_column(connection, table, source.names)
        load = _Inserts(connection, table, source.names, types, number)
        for done, batch in source.batches():
            refused.add(sorted(batch.rejected + load.insert(batch), key=lambda row: row.line))
            progress("loading", done, source.size)
    report.rows = load.rows
    report.rejected, report.first_rejected = refused.count, refused.first
    report.rejects = refused.path if refused.count else None
    return report


def table_types(connection: Connection, table: str) -> dict[str, str] | None:
    """Declared types by lower-cased column name, or None when there is no such table."""
    schema, name = split_qualified(table)
    known = connection.execute(
        "select 1 from schema() where type = 'table' and lower(name) = lower(?) and lower(schema) = lower(?)",
        (name, schema or "main"),
    ).fetchone()
    if known is None:
        return None
    rows = connection.execute('select name, type, "generated" from table_info(?)', (name,)).fetchall()
    return {str(column).lower(): str(type_name).upper() for column, type_name, made in rows if not made}


def create_table(
    connection: Connection, table: str, source: Source, key: Sequence[str], progress: Progress
) -> str:
    """Create the table for a source; returns the statement."""

    def batches() -> Iterable[list[list[Any]]]:
        for done, batch in source.batches():
            progress("looking at the values", done, source.size)
            yield batch.rows

    columns = source.declared or infer_columns(len(source.names), batches())
    unknown = [name for name in key if name not in source.names]
    if unknown:
        raise CommandError(f"key column {unknown[0]!r} is not in the file; it has {', '.join(source.names)}")
    key = tuple(key) or source.key or _natural_key(table, source, columns)
    declarations = [
        f"{quote(name)} {column.type_name}{' null' if column.nullable else ''}"
        for name, column in zip(source.names, columns, strict=True)
    ]
    if not key:
        key = (_unused_name(source.names),)
        declarations.insert(0, f"{quote(key[0])} integer")
    declarations.append(f"primary key ({', '.join(map(quote, key))})")
    statement = f"create table {quote_qualified(table)} ({', '.join(declarations)})"
    connection.execute(statement)
    return statement


def numbering_column(connection: Connection, table: str, names: Sequence[str]) -> str | None:
    """The column that an import numbers: an integer that alone is the key and is not in the file."""
    keys = connection.execute(
        'select name, type, dflt_value, "generated" from table_info(?) where pk > 0',
        (split_qualified(table)[1],),
    ).fetchall()
    if len(keys) != 1:
        return None
    name, type_name, default, generated = keys[0]
    given = name.lower() in map(str.lower, names)
    return name if type_name == "INTEGER" and default is None and not generated and not given else None


class _Inserts:
    """Inserts batches into a table and keeps count."""

    def __init__(
        self,
        connection: Connection,
        table: str,
        names: list[str],
        types: dict[str, str],
        number: str | None,
    ) -> None:
        missing = [name for name in names if name.lower() not in types]
        if missing:
            raise CommandError(f"table {table} has no column {missing[0]!r}; it has {', '.join(types)}")
        self.rows = 0
        self._connection = connection
        self._names = names
        self._types = [types[name.lower()] for name in names]
        self._numbers = None if number is None else count(self._largest(table, number) + 1)
        targets = [*([] if number is None else [number]), *names]
        self._insert = (
            f"insert into {quote_qualified(table)} ({', '.join(map(quote, targets))}) "
            f"values ({', '.join('?' * len(targets))})"
        )

    def _largest(self, table: str, number: str) -> int:
        """The number of the last row there is; 0 before the first."""
        row = self._connection.execute(
            f"select max({quote(number)}) from {quote_qualified(table)}"
        ).fetchone()
        return max(int(row[0] or 0), 0)

    def insert(self, batch: Batch) -> list[Rejected]:
        """Insert a batch; returns the rows that could not be converted or were refused."""
        if not batch.rows:
            return []
        rows, indexes, unconverted = convert_columns(batch.rows, self._names, self._types)
        refused = [Rejected(batch.lines[i], reason, batch.rows[i]) for i, reason in unconverted]
        if self._numbers is not None:
            rows = [(number, *row) for number, row in zip(self._numbers, rows, strict=False)]
        for position, reason in self._insert_some(rows, 0):
            original = indexes[position]
            refused.append(Rejected(batch.lines[original], reason, batch.rows[original]))
        return refused

    def _insert_some(self, rows: list[tuple[Any, ...]], start: int) -> list[tuple[int, str]]:
        """Insert rows under a savepoint; halve them when refused. Returns (position, reason)."""
        if not rows:
            return []
        try:
            with self._connection.transaction():
                self._connection.executemany(self._insert, rows)
        except DatabaseError as error:
            if not _is_fault_of_a_row(error):
                raise
            if len(rows) == 1:
                return [(start, describe(error))]
            middle = len(rows) // 2
            return [
                *self._insert_some(rows[:middle], start),
                *self._insert_some(rows[middle:], start + middle),
            ]
        self.rows += len(rows)
        return []


def _is_fault_of_a_row(error: Error) -> bool:
    """True for what a value can cause: a constraint, a conversion, unencodable text."""
    return isinstance(error, (IntegrityError, DataError)) or error.code == StatusCode.ERROR


def _natural_key(table: str, source: Source, columns: Sequence[Column]) -> tuple[str, ...]:
    """A column that names itself the key and is one, as a tuple; empty when there is none."""
    wanted = ("id", f"{split_qualified(table)[1].lower()}_id")
    for position, name in enumerate(source.names):
        if name.lower() in wanted and not columns[position].nullable:
            seen: set[Any] = set()
            rows = 0
            for _done, batch in source.batches():
                rows += len(batch.rows)
                seen.update(row[position] for row in batch.rows)
            if len(seen) == rows:
                return (name,)
    return ()


def _unused_name(names: Iterable[str]) -> str:
    taken = {name.lower() for name in names}
    candidates = (f"row_id{suffix or ''}" for suffix in count())
    return next(name for name in candidates if name not in taken)
