"""A process that dies in the middle of its work leaves views and sources that agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quereus_store

WRITER = """
import os, signal, sys
import quereus_store

con = quereus_store.connect(sys.argv[1], backend=sys.argv[2])
con.execute("create table t (id integer primary key, g text, n integer, w real)")
con.execute("create materialized view per_g as"
    " select g, count(*) as c, sum(n) as s, avg(w) as m from t group by g")
con.execute("create materialized view heavy as select id, n from t where n > 10")
con.execute("create materialized view totals as select c, count(*) as groups from per_g group by c")
for i in range(20):
    con.execute("insert into t values (?, ?, ?, ?)", (i, "abc"[i % 3], i, i / 8))
con.execute("begin")
con.execute("delete from t where id < 10")
con.execute("update t set n = n + 100")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_killed_within_a_transaction(backend: str, tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    ended = subprocess.run([sys.executable, "-c", WRITER, path, backend], check=False)
    assert ended.returncode != 0
    con = quereus_store.connect(path, backend=backend)
    assert con.database.problems == ()
    assert con.execute("select count(*) from heavy").fetchone() == (9,)
    assert con.database.check() == []
    con.execute("insert into t values (100, 'a', 50, 1.0)")
    assert con.execute("select s from per_g where g = 'a'").fetchone() == (63 + 50,)
    assert con.database.check() == []
    con.close()
