"""A result that is streamed takes memory for its batches, not for its rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import quereus_store
from quereus_store.cli.bench.memory import measure

ROOT = Path(__file__).parents[2]

# Private memory, in megabytes: the pages of a mapped file belong to the system.
PROGRAM = """
import json, sys
import quereus_store
from quereus_store.cli.bench.memory import private_megabytes
path, backend, sql, way = sys.argv[1:]
with quereus_store.connect(path, backend=backend, cache_size=2**20) as con:
    con.execute("select 1").fetchall()
    con.execute(sql).fetchone()
    idle = peak = private_megabytes()
    count = 0
    cursor = con.execute(sql)
    batches = [cursor.fetchall()] if way == "all" else cursor.fetch_batches()
    for number, batch in enumerate(batches):
        count += len(batch)
        if number % 5 == 0:
            peak = max(peak, private_megabytes())
    print(json.dumps([count, peak - idle]))
"""
ROWS = 120_000

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell the memory of a process"
)


@pytest.fixture(scope="module", params=["lmdb", "leveldb"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Path and backend of a table that takes some thirty megabytes as Python objects."""
    path = str(tmp_path_factory.mktemp("memory") / "db")
    with quereus_store.connect(path, backend=request.param, synchronous="off") as con:
        con.execute("create table item (id integer primary key, code text, price real)")
        con.executemany(
            "insert into item values (?, ?, ?)", [(n, f"code-{n:07d}", n / 4) for n in range(ROWS)]
        )
    return path, str(request.param)


def above_idle(filled: tuple[str, str], sql: str, way: str = "batches") -> float:
    command = [sys.executable, "-c", PROGRAM, *filled, sql, way]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows, megabytes = json.loads(done.stdout)
    assert rows == ROWS
    return float(megabytes)


def test_a_streamed_result(filled: tuple[str, str]) -> None:
    assert (
        above_idle(filled, "select price, upper(code), id from item where id >= 0") < 8
    )  # LevelDB keeps blocks


def test_the_measure_is_one(filled: tuple[str, str]) -> None:
    """All rows at once do take what they take."""
    assert above_idle(filled, "select * from item", "all") > 20


def test_a_million_rows(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """With the cache as it comes, which holds the whole of smaller tables."""
    if not pytestconfig.getoption("--long"):
        pytest.skip("with --long only")
    for rows in (400_000, 1_000_000):
        (tmp_path / str(rows)).mkdir()
        assert measure(tmp_path / str(rows), rows)["above_idle_mb"] < 100
