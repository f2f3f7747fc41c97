"""Writing a table or the result of a query to a file or to standard output, batch by batch."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.names import quote_qualified, split_qualified
from quereus_store.cli.results import json_text, value_text
from quereus_store.cli.transfer.formats import (
    JSON,
    JSON_LINES,
    PARQUET,
    STANDARD,
    Format,
    column_names,
    format_of,
)
from quereus_store.cli.transfer.importer import table_types
from quereus_store.cli.transfer.parquet_writer import write_parquet

if TYPE_CHECKING:
    from quereus_store import Connection

Rows = Sequence[Sequence[Any]]
WriteRows = Callable[[Rows], None]
Progress = Callable[[int], None]

_BATCH_ROWS = 2000


def export_file(
    connection: Connection,
    source: str,
    path: Path,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    null: str = "",
    progress: Progress = lambda rows: None,
) -> int:
    """Write a table, view or query to a CSV, JSON or Parquet file; returns the number of rows.

    :param source: a name, or a statement that starts with ``select``, ``values`` or ``with``.
    :param path: the file; ``-`` is standard output.
    :param format: name of the format (``formats.FORMATS``); when absent, the end of the file's name tells.
    :param null: text that stands for NULL in a CSV file; with the default an empty text and NULL
        look alike, and ``\\N`` keeps them apart.
    :raises CommandError: for an unknown format or a statement without rows.
    """
    words = source.split(None, 1)
    is_query = len(words) > 1 and words[0].lower() in ("select", "values", "with")
    kind = format_of(path, format)
    sql = source if is_query else f"select * from {quote_qualified(source)}"
    if kind is PARQUET:
        key = () if is_query else _key(connection, source)
        with _seekable(path) as stream:
            return write_parquet(connection, sql, key, stream, progress)
    cursor = connection.execute(sql)
    names = column_names(cursor)
    with _replaced(path) as raw, _as_text(raw) as text, _row_writer(text, names, kind, null) as write:
        return _write_all(cursor, write, str(path), progress)


def _write_all(cursor: Any, write: WriteRows, title: str, progress: Progress) -> int:
    count = 0
    while rows := cursor.fetchmany(_BATCH_ROWS):
        try:
            write(rows)
        except UnicodeEncodeError as failure:
            code = ord(failure.object[failure.start])
            raise CommandError(
                f"{title}: among rows {count + 1:,} to {count + len(rows):,} is a text with an unpaired "
                f"surrogate (U+{code:04X}), which UTF-8 cannot spell; JSON lines can"
            ) from None
        count += len(rows)
        progress(count)
    return count


def _key(connection: Connection, table: str) -> list[str]:
    """The columns of a table's key; none for a view."""
    schema, name = split_qualified(table)
    if schema is not None or table_types(connection, table) is None:
        return []  # table_info knows names without a schema
    return [
        name
        for (name,) in connection.execute(
            "select name from table_info(?) where pk > 0 order by pk", (name,)
        ).fetchall()
    ]


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` when it is whole; what was there stays until then."""
    if path == STANDARD:
        yield _standard_output()
        return
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:  # a pipe or a device
            yield stream
        return
    target = path.resolve()
    partial = target.with_name(f"{target.name}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
        os.replace(partial, target)
    except BaseException as failure:
        partial.unlink(missing_ok=True)
        if isinstance(failure, OSError) and failure.filename == str(partial):
            failure.filename = str(path)
        raise


def _standard_output() -> BinaryIO:
    sys.stdout.flush()
    return sys.stdout.buffer


@contextmanager
def _seekable(path: Path) -> Iterator[BinaryIO]:
    """A file for what is written from the start again where need be; pipes get it when it is whole."""
    if path != STANDARD and (path.is_file() or not path.exists()):
        with _replaced(path) as stream:
            yield stream
        return
    with tempfile.TemporaryFile() as whole:
        yield whole
        whole.seek(0)
        with _replaced(path) as stream:
            shutil.copyfileobj(whole, stream)


@contextmanager
def _as_text(raw: BinaryIO) -> Iterator[TextIO]:
    text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
    try:
        yield text
        text.flush()
    finally:
        with suppress(ValueError, OSError):
            text.detach()


@contextmanager
def _row_writer(stream: TextIO, names: Sequence[str], kind: Format, null: str) -> Iterator[WriteRows]:
    """A function that writes rows; the end of the block writes what stands behind them."""
    if kind is JSON:
        stream.write("[")
        first = True

        def write(rows: Rows) -> None:
            nonlocal first
            text = ",\n".join(json_text(dict(zip(names, row, strict=True))) for row in rows)
            stream.write(("\n" if first else ",\n") + text)
            first = False

        yield write
        stream.write("]\n" if first else "\n]\n")
    elif kind is JSON_LINES:
        yield lambda rows: stream.writelines(
            json_text(dict(zip(names, row, strict=True))) + "\n" for row in rows
        )
    else:
        yield _csv_writer(stream, names, kind.delimiter or ",", null)


def _csv_writer(stream: TextIO, names: Sequence[str], delimiter: str, null: str) -> WriteRows:
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    plain = frozenset({str, int})

    def write(rows: Rows) -> None:
        columns = [
            column
            if plain.issuperset(map(type, column))
            else [null if value is None else value_text(value) for value in column]
            for column in zip(*rows, strict=True)
        ]
        writer.writerows(zip(*columns, strict=True))

    return write
