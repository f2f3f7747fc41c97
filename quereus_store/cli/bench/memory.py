"""Peak memory of a streamed ``select *``, measured in a process of its own.

``python -m quereus_store.cli.bench.memory make|scan FILE ROWS``: ``make`` fills a file, ``scan``
reads it through ``fetchmany`` and prints as JSON how much private memory it took at most above the
idle, connected process.  Private memory (``RssAnon``) is what counts: the pages of a mapped file
are the system's cache and are given back whenever another process needs them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import quereus_store

_BATCH = 1000


def measure(folder: Path, rows: int) -> dict[str, float]:
    """Fill an LMDB file with ``rows`` rows and scan it; returns the figures in megabytes."""
    path = folder / "memory.qdb"
    command = [sys.executable, "-m", "quereus_store.cli.bench.memory"]
    subprocess.run([*command, "make", str(path), str(rows)], check=True)
    scan = subprocess.run([*command, "scan", str(path), str(rows)], check=True, capture_output=True)
    figures: dict[str, float] = json.loads(scan.stdout)
    return figures


def private_megabytes() -> float:
    """Private resident memory of this process now, in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell the private memory of a process")


def _make(path: str, rows: int) -> None:
    with quereus_store.connect(path) as connection:
        connection.execute("create table item (id integer primary key, code text, price real)")
        for start in range(0, rows, 50_000):
            batch = [(n, f"code-{n:07d}", n / 4) for n in range(start, min(start + 50_000, rows))]
            with connection.transaction():
                connection.executemany("insert into item values (?, ?, ?)", batch)


def _scan(path: str, rows: int) -> None:
    with quereus_store.connect(path) as connection:
        connection.execute("select count(*) from schema()").fetchall()
        idle = peak = private_megabytes()
        cursor = connection.execute("select * from item")
        count = 0
        while batch := cursor.fetchmany(_BATCH):
            count += len(batch)
            if count % (_BATCH * 10) == 0:
                peak = max(peak, private_megabytes())
        if count != rows:
            raise SystemExit(f"{count} rows instead of {rows}")
        print(json.dumps({"rows": count, "idle_mb": idle, "above_idle_mb": peak - idle}))


if __name__ == "__main__":
    {"make": _make, "scan": _scan}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
