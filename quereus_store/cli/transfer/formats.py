"""The kinds of files that are imported and exported, and how a file tells its own.

The end of the name says it; ``--format`` says it for other names and for ``-``, which is standard
input or output.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from quereus_store.cli.diagnostics import CommandError

if TYPE_CHECKING:
    from quereus_store import Cursor


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: its name for ``--format``, its suffixes, and what separates its fields, if given."""

    name: str
    suffixes: tuple[str, ...]
    delimiter: str | None = None


CSV = Format("csv", (".csv", ".txt"))
TSV = Format("tsv", (".tsv",), "\t")
PSV = Format("psv", (".psv",), "|")
JSON_LINES = Format("jsonl", (".jsonl", ".ndjson", ".jsonlines"))
JSON = Format("json", (".json",))
PARQUET = Format("parquet", (".parquet", ".pq"))

FORMATS: Mapping[str, Format] = MappingProxyType(
    {kind.name: kind for kind in (CSV, TSV, PSV, JSON_LINES, JSON, PARQUET)}
)
_BY_SUFFIX = MappingProxyType({suffix: kind for kind in FORMATS.values() for suffix in kind.suffixes})

STANDARD = Path("-")
"""What stands for standard input and output."""

DATA_HELP = "file ending in .csv, .tsv, .jsonl, .json or .parquet; - for standard {}"


def add_format_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``."""
    parser.add_argument(
        "--format", choices=tuple(FORMATS), help="format of DATA (default: by the end of its name)"
    )


def format_of(path: Path, name: str | None) -> Format:
    """The format that ``name`` says or, without it, the end of the file's name.

    :raises CommandError: for an unknown name or suffix, and for ``-`` without a name.
    """
    if name is not None:
        if name not in FORMATS:
            raise CommandError(f"unknown format {name!r}; there are {', '.join(FORMATS)}")
        return FORMATS[name]
    if path == STANDARD:
        raise CommandError("- has no name that tells the format; say --format csv, jsonl, json or parquet")
    kind = _BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(sorted(_BY_SUFFIX))
        raise CommandError(
            f"{path}: unknown kind of file; the name must end in one of {known}, or --format names it"
        )
    return kind


def check_names(title: object, names: Sequence[str], place: str) -> None:
    """Refuse columns without a name and names that stand twice.

    :param place: where the names stand, as in ``the header``.
    :raises CommandError: naming the column.
    """
    seen: set[str] = set()
    for position, name in enumerate(names, 1):
        if not name:
            raise CommandError(f"{title}: column {position} has no name")
        if name.lower() in seen:
            raise CommandError(f"{title}: column {name!r} stands twice in {place}")
        seen.add(name.lower())


def column_names(cursor: Cursor) -> list[str]:
    """The names of a result's columns, which are unique.

    :raises CommandError: for a statement without rows.
    """
    if cursor.description is None:
        raise CommandError("the statement returns no rows")
    return [str(column[0]) for column in cursor.description]
