"""States in memory follow commits, rollbacks and savepoints, and notice other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quereus_store

BODY = "select g, avg(y) as m, sum(y) as s, max(y) as hi from t group by g"


def prepare(con: Any) -> None:
    con.execute("create table t (id integer primary key, g text not null, y real null)")
    con.execute(f"create materialized view v as {BODY}")
    con.executemany(
        "insert into t values (?, ?, ?)", [(1, "a", 0.1), (2, "a", 0.2), (3, "b", 1e17), (4, "b", 1.0)]
    )


def check(con: Any) -> None:
    assert con.execute("select strategy from maintenance_info('v')").fetchall() == [("states",)]
    assert (
        con.execute("select * from v order by g").fetchall() == con.execute(BODY + " order by g").fetchall()
    )


def test_exact_through_everything_that_comes_and_goes() -> None:
    con = quereus_store.connect(":memory:")
    prepare(con)
    check(con)
    con.execute("delete from t where id = 3")
    check(con)
    assert con.execute("select m from v where g = 'b'").fetchone() == (1.0,)


def test_rollbacks_take_states_back() -> None:
    con = quereus_store.connect(":memory:")
    prepare(con)
    con.execute("begin")
    con.execute("insert into t values (5, 'a', 0.7)")
    con.execute("savepoint s")
    con.execute("delete from t where g = 'a'")
    check(con)
    con.execute("rollback to s")
    con.execute("insert into t values (6, 'c', null)")
    check(con)
    con.execute("rollback")
    con.execute("insert into t values (7, 'a', 0.3)")
    check(con)


def test_a_failed_statement_takes_states_back() -> None:
    con = quereus_store.connect(":memory:")
    prepare(con)
    con.execute("begin")
    con.execute("insert into t values (5, 'a', 0.7)")
    with pytest.raises(quereus_store.IntegrityError):
        con.execute("insert into t values (6, 'a', 0.9), (1, 'a', 0.0)")
    check(con)
    con.execute("commit")
    con.execute("insert into t values (8, 'a', 0.1)")
    check(con)


def test_another_process_changes_the_source(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    con = quereus_store.connect(path)
    prepare(con)
    con.execute("insert into t values (5, 'a', 0.7)")
    code = (
        "import quereus_store, sys; con = quereus_store.connect(sys.argv[1]);"
        "con.execute(\"insert into t values (6, 'a', 0.9)\"); con.close()"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    check(con)
    con.execute("insert into t values (7, 'a', 0.3)")
    check(con)
    con.close()
