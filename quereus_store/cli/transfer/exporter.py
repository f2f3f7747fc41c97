"""Writing a table or the result of a query to a file, batch by batch."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.names import quote_qualified
from quereus_store.cli.results import json_text, value_text
from quereus_store.cli.transfer.importer import CSV_SUFFIXES, JSON_LINES_SUFFIXES

if TYPE_CHECKING:
    from quereus_store import Connection

Rows = Sequence[Sequence[Any]]
WriteRows = Callable[[Rows], None]

_BATCH_ROWS = 2000
_DELIMITERS: Mapping[str, str] = MappingProxyType({".tsv": "\t", ".psv": "|"})


def export_file(
    connection: Connection,
    source: str,
    path: Path,
    *,
    null: str = "",
    progress: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write a table, view or query to a CSV or JSON lines file; returns the number of rows.

    :param source: a name, or a statement that starts with ``select``, ``values`` or ``with``.
    :param null: text that stands for NULL in a CSV file; with the default an empty text and NULL
        look alike, and ``\\N`` keeps them apart.
    :raises CommandError: for a file name of unknown kind, or a statement without rows.
    """
    words = source.split(None, 1)
    is_query = len(words) > 1 and words[0].lower() in ("select", "values", "with")
    kind = path.suffix.lower()
    if kind not in CSV_SUFFIXES | JSON_LINES_SUFFIXES:
        known = ", ".join(sorted(CSV_SUFFIXES | JSON_LINES_SUFFIXES))
        raise CommandError(f"{path}: unknown kind of file; the name must end in one of {known}")
    cursor = connection.execute(source if is_query else f"select * from {quote_qualified(source)}")
    if cursor.description is None:
        raise CommandError("the statement returns no rows")
    names = [column[0] for column in cursor.description]
    count = 0
    with _replaced(path) as stream:
        if kind in JSON_LINES_SUFFIXES:
            write = _json_writer(stream, names)
        else:
            write = _csv_writer(stream, names, _DELIMITERS.get(kind, ","), null)
        while rows := cursor.fetchmany(_BATCH_ROWS):
            try:
                write(rows)
            except UnicodeEncodeError as failure:
                code = ord(failure.object[failure.start])
                raise CommandError(
                    f"{path}: among rows {count + 1:,} to {count + len(rows):,} is a text with an unpaired "
                    f"surrogate (U+{code:04X}), which UTF-8 cannot spell; JSON lines can"
                ) from None
            count += len(rows)
            progress(count)
    return count


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    """A text file that takes the place of ``path`` when it is whole; what was there stays until then."""
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="") as stream:  # a pipe or a device
            yield stream
        return
    target = path.resolve()
    partial = target.with_name(f"{target.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        os.replace(partial, target)
    except BaseException as failure:
        partial.unlink(missing_ok=True)
        if isinstance(failure, OSError) and failure.filename == str(partial):
            failure.filename = str(path)
        raise


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


def _json_writer(stream: TextIO, names: Sequence[str]) -> WriteRows:
    def write(rows: Rows) -> None:
        stream.writelines(json_text(dict(zip(names, row, strict=True))) + "\n" for row in rows)

    return write
