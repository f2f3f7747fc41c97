"""Comma-separated values: a header line, then rows.

A row with more or fewer fields than the header, a quote in the wrong place or a byte outside the
encoding is refused by line, and reading goes on with the next row.  Empty fields (or those equal to
one of the null texts) are NULL.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.transfer.formats import check_names
from quereus_store.cli.transfer.reading import BATCH_ROWS, Batch, Rejected, open_text, undecodable


class CsvSource:
    """A CSV file with a header.

    :param title: what messages call the file; its path when absent.
    :param delimiter: one character; when absent, guessed from the header among ``, ; tab |``.
    :param nulls: texts that stand for NULL.
    :raises CommandError: when the header is missing, repeats a name or cannot be decoded.
    """

    declared = None
    key: tuple[str, ...] = ()
    place = "line"

    def __init__(
        self,
        path: Path,
        *,
        title: str = "",
        encoding: str | None = None,
        delimiter: str | None = None,
        nulls: Iterable[str] = ("",),
    ) -> None:
        self._path = path
        self._title = title or str(path)
        self._encoding = encoding
        self._nulls = frozenset(nulls)
        self.size = path.stat().st_size
        header = self._header_line()
        self._delimiter = delimiter or max(",;\t|", key=header.count)
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n':
            raise CommandError(
                f"{delimiter!r} cannot separate fields: name one character, no quote or line end"
            )
        self.names = self._header_names(header)

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The rows in batches, each with the number of bytes read so far."""
        csv.field_size_limit(sys.maxsize)
        raw, text = open_text(self._path, self._encoding)
        with text:
            lines = _Remembering(text)
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            next(reader)
            batch = Batch()
            line = reader.line_num + 1
            while True:
                lines.recent.clear()
                try:
                    row = next(reader)
                except StopIteration:
                    break
                except csv.Error as error:
                    content = "".join(lines.recent).rstrip("\r\n")
                    batch.rejected.append(Rejected(line, f"not valid CSV: {error}", [content]))
                    row = []
                if row:
                    self._take(batch, line, row)
                line = reader.line_num + 1
                if len(batch.rows) >= BATCH_ROWS:
                    yield raw.tell(), batch
                    batch = Batch()
            yield self.size, batch

    def _take(self, batch: Batch, line: int, row: list[str]) -> None:
        """Put one row among the batch's rows or its refused ones."""
        if len(row) != len(self.names):
            reason = f"{len(row)} fields, the header has {len(self.names)}"
        elif (bad := _first_undecodable(self.names, row, self._encoding)) is not None:
            reason = bad
        else:
            nulls = self._nulls
            has_null = not nulls.isdisjoint(row)
            batch.rows.append([None if value in nulls else value for value in row] if has_null else row)
            batch.lines.append(line)
            return
        batch.rejected.append(Rejected(line, reason, row))

    def _header_line(self) -> str:
        _raw, text = open_text(self._path, self._encoding)
        with text:
            header = text.readline()
        if not header.strip():
            raise CommandError(f"{self._title}: no header line")
        if why := undecodable(header, self._encoding):
            raise CommandError(f"{self._title}: line 1: {why}; name the right one with --encoding")
        return header

    def _header_names(self, header: str) -> list[str]:
        names = [name.strip() for name in next(csv.reader([header], delimiter=self._delimiter))]
        check_names(self._title, names, "the header")
        return names


class _Remembering:
    """An iterator of lines that keeps those read since ``recent`` was last cleared."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.recent: list[str] = []
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.recent.append(line)
        return line


def _first_undecodable(names: list[str], row: list[str], encoding: str | None) -> str | None:
    # isascii() is a flag in the string: nearly every row ends here.
    for name, value in zip(names, row, strict=True):
        if not value.isascii() and (why := undecodable(value, encoding)):
            return f"column {name!r}: {why}"
    return None
