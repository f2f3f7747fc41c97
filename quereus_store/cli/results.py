"""Printing result rows: one writer a mode, chosen from a table.

``table`` is for people (rich draws it, wide enough for the terminal); the others are for
programs and files and stream their rows.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quereus_store.types.values import float_to_text

Row = Sequence[Any]
Writer = Callable[[TextIO, Sequence[str], Iterable[Row], int], int]

_SURROGATE = re.compile("[\ud800-\udfff]")
_NULL_STYLE = "dim italic"
_FETCHED_AT_ONCE = 1000


def value_text(value: Any) -> str:
    """A value as the database would render it in text; NULL is empty, blobs are ``x'…'``."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else float_to_text(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, (dict, list)):
        return json_text(value)
    return str(value)


def json_text(value: Any) -> str:
    """Compact JSON of a value; blobs, which JSON lacks, become the text ``x'…'``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=value_text)
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write_table(stream: TextIO, names: Sequence[str], rows: Iterable[Row], limit: int) -> int:
    """Draw a table of at most ``limit`` rows (0: all) and tell of the rest; returns rows drawn."""
    rows = iter(rows)
    shown = list(islice(rows, limit)) if limit else list(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for index, name in enumerate(names):
        numbers = all(_is_number(row[index]) or row[index] is None for row in shown)
        table.add_column(Text(name), justify="right" if numbers and shown else "left", overflow="fold")
    for row in shown:
        table.add_row(*map(_cell, row))
    console = Console(file=stream, highlight=False, width=None if stream.isatty() else 240)
    if names:
        console.print(table)
    remaining = sum(1 for _ in rows)
    count = len(shown) + remaining
    note = f"{count:,} row{'' if count == 1 else 's'}"
    console.print(Text(note + (f", the first {len(shown):,} shown" if remaining else ""), style="dim"))
    return len(shown)


def write_csv(stream: TextIO, names: Sequence[str], rows: Iterable[Row], limit: int) -> int:
    """Comma-separated values with a header; NULL is an empty field."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    return _write_each(rows, limit, lambda row: writer.writerow(map(value_text, row)))


def write_json(stream: TextIO, names: Sequence[str], rows: Iterable[Row], limit: int) -> int:
    """JSON lines: one object a row."""
    return _write_each(
        rows, limit, lambda row: stream.write(json_text(dict(zip(names, row, strict=True))) + "\n")
    )


def write_list(stream: TextIO, names: Sequence[str], rows: Iterable[Row], limit: int) -> int:
    """Values separated by ``|``, without a header."""
    return _write_each(rows, limit, lambda row: stream.write("|".join(map(value_text, row)) + "\n"))


def write_markdown(stream: TextIO, names: Sequence[str], rows: Iterable[Row], limit: int) -> int:
    """A Markdown table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    stream.write(line(names))
    stream.write(line("---" for _ in names))
    return _write_each(rows, limit, lambda row: stream.write(line(map(value_text, row))))


def write_lines(stream: TextIO, names: Sequence[str], rows: Iterable[Row], limit: int) -> int:
    """One ``name = value`` a line, an empty line between rows."""
    width = max(map(len, names), default=0)

    def write(row: Row) -> object:
        pairs = zip(names, map(value_text, row), strict=True)
        return stream.write("".join(f"{name:>{width}} = {value}\n" for name, value in pairs) + "\n")

    return _write_each(rows, limit, write)


MODES: Mapping[str, Writer] = MappingProxyType(
    {
        "table": write_table,
        "csv": write_csv,
        "json": write_json,
        "list": write_list,
        "markdown": write_markdown,
        "line": write_lines,
    }
)


def fetch_rows(cursor: Any) -> Iterator[Row]:
    """The rows of a cursor, fetched in batches."""
    while batch := cursor.fetchmany(_FETCHED_AT_ONCE):
        yield from batch


def _write_each(rows: Iterable[Row], limit: int, write: Callable[[Row], object]) -> int:
    count = 0
    for count, row in enumerate(islice(rows, limit) if limit else rows, 1):  # noqa: B007 - the last count
        write(row)
    return count


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style=_NULL_STYLE)
    return Text(value_text(value).replace("\n", "⏎"))
