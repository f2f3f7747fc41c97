"""Opening a database with fifty maintained tables over many rows, in a process of its own.

``python -m quereus_store.cli.bench.reopening make|open FILE ROWS``: ``make`` fills a file, ``open``
connects, reads one of the tables, changes a source row, and prints how long each took as JSON.  The tables
come with their rows: opening takes the time of the catalog, however many rows there are.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import quereus_store

VIEWS = 50
_BATCH = 50_000


def measure_reopening(folder: Path, rows: int) -> dict[str, float]:
    """Fill an LMDB file, open it in a new process; returns the seconds."""
    path = folder / "reopening.qdb"
    command = [sys.executable, "-m", "quereus_store.cli.bench.reopening"]
    subprocess.run([*command, "make", str(path), str(rows)], check=True)
    opened = subprocess.run([*command, "open", str(path), str(rows)], check=True, capture_output=True)
    figures: dict[str, float] = json.loads(opened.stdout)
    return figures


def bodies() -> list[str]:
    """Fifty queries over one table, each of another part of it."""
    return [
        f"select grp, count(*) as items, sum(price) as total from item where grp % {VIEWS} = {number} "
        "group by grp"
        for number in range(VIEWS)
    ]


def make(path: str, rows: int) -> None:
    """Fill a file with a table and its maintained tables."""
    with quereus_store.connect(path, backend="lmdb", cache_size=2**30) as connection:
        connection.execute("create table item (id integer primary key, grp integer, price real)")
        for start in range(0, rows, _BATCH):
            batch = [(n, n % 1000, n / 4) for n in range(start, min(start + _BATCH, rows))]
            connection.executemany("insert into item values (?, ?, ?)", batch)
        for number, body in enumerate(bodies()):
            connection.execute(f"create materialized view part{number} as {body}")


def reopen(path: str, rows: int) -> dict[str, float]:
    """Seconds until the file is open, until a maintained table is read, and for a first change after that."""
    started = time.perf_counter()
    connection = quereus_store.connect(path, backend="lmdb")
    opened = time.perf_counter()
    groups = connection.execute("select items from part0").fetchall()
    read = time.perf_counter()
    with connection:
        if sum(items for (items,) in groups) != len(range(0, rows, VIEWS)):
            raise SystemExit("a maintained table has lost rows")
        connection.execute("insert into item values (-1, 1, 1.0)")
        return {
            "rows": rows,
            "open": opened - started,
            "first_read": read - opened,
            "first_change": time.perf_counter() - read,
        }


if __name__ == "__main__":
    _, action, file, count = sys.argv
    if action == "make":
        make(file, int(count))
    else:
        print(json.dumps(reopen(file, int(count))))
